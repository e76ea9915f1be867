import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { STAGES, endsInWindow, hasStage, stageWindow } from '#mails/stages.ts'
import { DAY_MS, HOUR_MS, addMs, asAppTime, parseAppTime, type AppTime } from '#shared/time.ts'
import { stageAt } from './stage-at.ts'

const at = (text: string): AppTime => parseAppTime(text) ?? expect.fail(`no time: ${text}`)
const instants = fc
  .date({ min: at('2024-01-01 00:00:00'), max: at('2030-01-01 00:00:00'), noInvalidDate: true })
  .map(asAppTime)
const lengths = fc.integer({ min: HOUR_MS, max: 400 * DAY_MS })

describe('reminder stages', () => {
  const start = at('2026-03-01 00:00:00')
  const end = at('2026-03-31 00:00:00')

  const table: [string, 3 | 1 | 0 | null][] = [
    ['2026-03-27 23:59:59', null],
    ['2026-03-28 00:00:00', 3],
    ['2026-03-29 23:59:59', 3],
    ['2026-03-30 00:00:00', 1],
    ['2026-03-30 23:59:59', 1],
    ['2026-03-31 00:00:00', 0],
    ['2026-04-06 23:59:59', 0],
    ['2026-04-07 00:00:00', null],
  ]
  for (const [now, stage] of table) {
    it(`a period that ends on 2026-03-31 00:00:00 is at stage ${stage ?? 'none'} on ${now}`, () => {
      expect(stageAt(start, end, at(now))).to.equal(stage)
    })
  }

  it('a period shorter than 3 days has no 3-day reminder', () => {
    const short = at('2026-03-28 00:00:01')
    expect(stageAt(short, end, at('2026-03-28 12:00:00'))).to.equal(null)
    expect(stageAt(short, end, at('2026-03-30 12:00:00'))).to.equal(1)
  })

  it('a period of exactly 3 days has its 3-day reminder', () => {
    expect(stageAt(at('2026-03-28 00:00:00'), end, at('2026-03-28 00:00:00'))).to.equal(3)
  })

  it('a period shorter than a day has the expired notice alone', () => {
    const short = at('2026-03-30 12:00:00')
    expect(STAGES.filter((stage) => hasStage(stage, short, end))).to.deep.equal([0])
  })

  it('whatever the period, no instant has two stages and none lies outside its window', () => {
    fc.assert(
      fc.property(instants, lengths, fc.integer({ min: -12 * DAY_MS, max: 12 * DAY_MS }), (begin, length, offset) => {
        const finish = addMs(begin, length)
        const now = addMs(finish, offset)
        const open = STAGES.filter((stage) => {
          const { from, until } = stageWindow(stage, finish)
          return from <= now && now < until
        })
        expect(open.length).to.be.at.most(1)
        const stage = stageAt(begin, finish, now)
        if (stage !== null) expect(open).to.deep.equal([stage])
      }),
    )
  })

  it('a stage is skipped exactly when its window began before the period', () => {
    fc.assert(
      fc.property(instants, lengths, (begin, length) => {
        const finish = addMs(begin, length)
        for (const stage of STAGES) {
          const { from } = stageWindow(stage, finish)
          expect(stageAt(begin, finish, from)).to.equal(from < begin ? null : stage)
        }
      }),
    )
  })

  it('the ends that a sweep asks for are exactly those whose window holds the present', () => {
    fc.assert(
      fc.property(instants, fc.integer({ min: -12 * DAY_MS, max: 12 * DAY_MS }), (now, offset) => {
        const finish = addMs(now, offset)
        for (const stage of STAGES) {
          const { after, upTo } = endsInWindow(stage, now)
          const { from, until } = stageWindow(stage, finish)
          expect(after < finish && finish <= upTo).to.equal(from <= now && now < until)
        }
      }),
    )
  })
})
