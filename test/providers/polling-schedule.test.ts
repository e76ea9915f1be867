import { expect } from 'chai'
import { describe, it } from 'mocha'
import { firstLookupAt, isGivenUp, nextLookupAt } from '#providers/engine/schedule.ts'
import { asRealTime, type RealTime } from '#shared/time.ts'

const at = (time: string): RealTime => asRealTime(new Date(`2026-03-${time}Z`))

describe('when a payment that stays pending is looked up', () => {
  it('for the first time 10 minutes after it was opened', () => {
    expect(firstLookupAt(at('01T10:00:00'))).to.deep.equal(at('01T10:10:00'))
  })

  it('then with growing gaps, once shortly after its end, and at most 6 hours apart', () => {
    const session = { lookups: 0, expiresAt: at('01T11:00:00') }
    const times: string[] = []
    for (let now = at('01T10:10:00'); times.length < 9; session.lookups += 1) {
      now = nextLookupAt(session, now)
      times.push(now.toISOString().slice(8, 16))
    }
    expect(times).to.deep.equal([
      '01T10:20',
      '01T10:40',
      '01T11:05',
      '01T12:25',
      '01T15:05',
      '01T20:25',
      '02T02:25',
      '02T08:25',
      '02T14:25',
    ])
  })

  it('not any more 14 days after its end', () => {
    const session = { expiresAt: at('01T11:00:00') }
    expect(isGivenUp(session, at('15T11:00:00'))).to.equal(false)
    expect(isGivenUp(session, at('15T11:00:01'))).to.equal(true)
  })
})
