import { expect } from 'chai'
import { describe, it } from 'mocha'
import { suggest, type MatchCandidate } from '#bank-mail/suggest.ts'
import { asRealTime } from '#shared/time.ts'

const RECEIVED = asRealTime(new Date('2026-11-13T10:00:00Z'))
const MONEY = { amount: 99_000, receivedAt: RECEIVED }

interface Candidate extends MatchCandidate {
  readonly transactionId: number
}

const candidate = (transactionId: number, changes: Partial<MatchCandidate> = {}): Candidate => ({
  transactionId,
  amountDue: 99_000,
  createdAt: asRealTime(new Date('2026-11-13T09:00:00Z')),
  isBankPageOpened: true,
  ...changes,
})

const ids = (candidates: readonly Candidate[]) => suggest(MONEY, candidates).map(({ transactionId }) => transactionId)

describe('suggestions for unmatched money', () => {
  it('begin with payments that miss exactly the amount, those with an opened bank page first', () => {
    const more = candidate(1, { amountDue: 120_000 })
    const less = candidate(2, { amountDue: 60_000 })
    const unopened = candidate(3, { isBankPageOpened: false })
    expect(ids([less, more, unopened, candidate(4)])).to.deep.equal([4, 3, 1, 2])
  })

  it('prefer the nearest in time among equals', () => {
    const old = candidate(1, { createdAt: asRealTime(new Date('2026-11-01T09:00:00Z')) })
    expect(ids([old, candidate(2)])).to.deep.equal([2, 1])
  })

  it('leave out payments that were opened after the money came, and those that miss far less', () => {
    const later = candidate(1, { createdAt: asRealTime(new Date('2026-11-14T10:00:00Z')) })
    expect(ids([later, candidate(2, { amountDue: 49_000 })])).to.deep.equal([])
  })

  it('are five at most', () => {
    expect(ids(Array.from({ length: 9 }, (_, index) => candidate(index)))).to.have.lengthOf(5)
  })
})
