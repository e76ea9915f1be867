import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { TRIAL_UNITS, type Interval, type TrialUnit } from '#shared/interval.ts'
import { DAY_MS, addMs, asAppTime } from '#shared/time.ts'
import { isValidPeriod, periodFrom } from '#subscriptions/period.ts'

const utc = (text: string) => asAppTime(new Date(`${text}Z`))
const text = (instant: Date | null) => instant && instant.toISOString().slice(0, 16).replace('T', ' ')

/** Ends of the periods that follow each other from a start. */
function ends(start: string, intervals: readonly Interval[]): (string | null)[] {
  let from = utc(start)
  let anchorDay: number | null = null
  return intervals.map((interval) => {
    const period = periodFrom(from, interval, anchorDay)
    from = period.end ?? from
    anchorDay = period.anchorDay
    return text(period.end)
  })
}

const month: Interval = { unit: 'month', count: 1 }
const year: Interval = { unit: 'year', count: 1 }
const day = (count: number): Interval => ({ unit: 'day', count })

describe('period arithmetic', () => {
  const rows: [string, string, Interval[], (string | null)[]][] = [
    [
      '31 January continues over 28 February to 31 March',
      '2026-01-31T10:00',
      [month, month, month],
      ['2026-02-28 10:00', '2026-03-31 10:00', '2026-04-30 10:00'],
    ],
    [
      '31 January continues over 29 February in a leap year',
      '2028-01-31T10:00',
      [month, month],
      ['2028-02-29 10:00', '2028-03-31 10:00'],
    ],
    [
      '29 February plus a year is 28 February, then 29 in leap years',
      '2024-02-29T00:00',
      [year, year, year, year],
      ['2025-02-28 00:00', '2026-02-28 00:00', '2027-02-28 00:00', '2028-02-29 00:00'],
    ],
    [
      'a month and a year use the same anchor',
      '2026-01-31T00:00',
      [month, year, month],
      ['2026-02-28 00:00', '2027-02-28 00:00', '2027-03-31 00:00'],
    ],
    [
      'a trial of 7 days anchors the month after it',
      '2026-01-24T08:30',
      [day(7), month, month],
      ['2026-01-31 08:30', '2026-02-28 08:30', '2026-03-31 08:30'],
    ],
    [
      'days between months set a new anchor',
      '2026-01-31T00:00',
      [month, day(1), month],
      ['2026-02-28 00:00', '2026-03-01 00:00', '2026-04-01 00:00'],
    ],
    ['weeks are seven days', '2026-12-28T23:59', [{ unit: 'week', count: 2 }], ['2027-01-11 23:59']],
    [
      'months continue over the end of a year',
      '2026-12-31T12:00',
      [month, month],
      ['2027-01-31 12:00', '2027-02-28 12:00'],
    ],
    ['lifetime never ends', '2026-01-31T00:00', [{ unit: 'lifetime', count: 1 }], [null]],
  ]
  for (const [title, start, intervals, expected] of rows) {
    it(title, () => expect(ends(start, intervals)).to.deep.equal(expected))
  }

  it('n payments of one month equal one payment of n months, and the same for years, from every day of eight years', () => {
    for (let start = utc('2023-01-01T13:45'); start < utc('2031-01-01T00:00'); start = addMs(start, DAY_MS)) {
      for (const count of [2, 3, 6, 12, 13]) {
        const steps = ends(
          start.toISOString().slice(0, 16),
          Array.from({ length: count }, () => month),
        )
        expect(steps.at(-1), `${start.toISOString()} + ${count} months`).to.equal(
          text(periodFrom(start, { unit: 'month', count }, null).end),
        )
      }
      const years = ends(start.toISOString().slice(0, 16), [year, year, year, year])
      expect(years.at(-1)).to.equal(text(periodFrom(start, { unit: 'month', count: 48 }, null).end))
    }
  })

  it('every sequence of periods from every day of eight years grows, keeps the time of day, and is valid', () => {
    const starts = fc.integer({ min: 0, max: 8 * 366 }).map((days) => addMs(utc('2023-01-01T13:45:17'), days * DAY_MS))
    const steps = fc.array(
      fc.record({ unit: fc.constantFrom<TrialUnit>(...TRIAL_UNITS), count: fc.integer({ min: 1, max: 18 }) }),
      { minLength: 1, maxLength: 12 },
    )
    fc.assert(
      fc.property(starts, steps, (start, intervals) => {
        let from = start
        let anchorDay: number | null = null
        for (const interval of intervals) {
          const period = periodFrom(from, interval, anchorDay)
          expect(isValidPeriod(period, interval, from)).to.equal(true)
          expect(period.end!.toISOString().slice(10)).to.equal(start.toISOString().slice(10))
          from = period.end!
          anchorDay = period.anchorDay
        }
      }),
      { numRuns: 2000 },
    )
  })

  it('the guard refuses an end that is not later, a month that is too short, and a date that cannot be formatted', () => {
    const start = utc('2026-08-30T00:00')
    const stale = { start, end: utc('2026-09-01T00:00'), anchorDay: 1 }
    expect(isValidPeriod(stale, month, start)).to.equal(false)
    expect(isValidPeriod({ ...stale, end: start }, day(0), start)).to.equal(false)
    expect(isValidPeriod({ ...stale, end: asAppTime(new Date(NaN)) }, month, start)).to.equal(false)
    expect(isValidPeriod(periodFrom(utc('9999-06-01T00:00'), year, null), year, null)).to.equal(false)
    expect(isValidPeriod({ start, end: null, anchorDay: null }, month, null)).to.equal(false)
  })
})
