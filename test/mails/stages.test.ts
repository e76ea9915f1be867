import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { STAGES, endsInWindow, hasStage, stageWindow } from '#mails/reminders/stages.ts'
import { DAY_MS, HOUR_MS, addMs, asAppTime } from '#shared/time.ts'
import { stageAt } from './stage-at.ts'

const instants = fc
  .date({ min: new Date('2024-01-01T00:00:00Z'), max: new Date('2030-01-01T00:00:00Z'), noInvalidDate: true })
  .map(asAppTime)
/** Whole days, where windows begin and end, and any time between. */
const spans = (from: number, to: number) =>
  fc.oneof(
    fc.integer({ min: Math.ceil(from), max: to }).map((days) => days * DAY_MS),
    fc.integer({ min: from * DAY_MS, max: to * DAY_MS }),
  )
const lengths = fc.oneof(spans(HOUR_MS / DAY_MS, 4), spans(4, 400))

describe('reminder stages', () => {
  it('a stage is skipped exactly when its window began before the period', () => {
    fc.assert(
      fc.property(instants, lengths, spans(-12, 12), (start, length, sinceEnd) => {
        const end = addMs(start, length)
        const now = addMs(end, sinceEnd)
        for (const stage of STAGES) {
          const { from, until } = stageWindow(stage, end)
          const { after, upTo } = endsInWindow(stage, now)
          const isOpen = from <= now && now < until
          expect(isOpen && hasStage(stage, start, end), `stage ${stage}`).to.equal(stageAt(start, end, now) === stage)
          expect(after < end && end <= upTo, `what a sweep asks for at stage ${stage}`).to.equal(isOpen)
        }
      }),
      { numRuns: 1000 },
    )
  })
})
