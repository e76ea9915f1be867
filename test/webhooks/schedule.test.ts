import { expect } from 'chai'
import { describe, it } from 'mocha'
import { MINUTE_MS, addMs, asRealTime } from '#shared/time.ts'
import { nextAttemptAt } from '#webhooks/schedule.ts'

const SCHEDULE = [1, 5, 15, 60, 240]
const ENDED = asRealTime(new Date('2026-03-01T10:00:07.250Z'))

describe('the retry schedule of webhooks', () => {
  it('waits 1, 5, 15, 60 and 240 minutes after the end of the failed attempt', () => {
    const gaps = [5, 4, 3, 2, 1].map((left) => nextAttemptAt(SCHEDULE, left, ENDED))
    expect(gaps).to.deep.equal(SCHEDULE.map((minutes) => addMs(ENDED, minutes * MINUTE_MS)))
  })

  it('gives up after the last retry', () => expect(nextAttemptAt(SCHEDULE, 0, ENDED)).to.equal(null))

  it('accepts fractions of a minute', () =>
    expect(nextAttemptAt([0.01, 0.05], 2, ENDED)).to.deep.equal(addMs(ENDED, 600)))

  it('starts with the first gap if an event has more retries than the current schedule', () =>
    expect(nextAttemptAt([2, 4], 5, ENDED)).to.deep.equal(addMs(ENDED, 2 * MINUTE_MS)))

  it('ends with the last gap if the schedule has grown', () =>
    expect(nextAttemptAt([...SCHEDULE, 600], 1, ENDED)).to.deep.equal(addMs(ENDED, 600 * MINUTE_MS)))

  it('never retries if the schedule is empty', () => expect(nextAttemptAt([], 3, ENDED)).to.equal(null))
})
