import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import {
  balanceAfterArrival,
  balanceAfterCompletion,
  balanceAfterDismissal,
  dueOf,
  keptOf,
  movableOf,
  balanceAfterMove,
  balanceAfterRefusedRefund,
  balanceAfterRefund,
  balanceAfterFailedRefund,
  takeNewest,
  type Balance,
} from '#payments/balance.ts'

const EMPTY: Balance = { amountReceived: 0, amountRefunded: 0, amountUsed: 0, amountLeft: 0 }
const PRICE = 100

/** Where each single unit of money is. */
type Fate = 'left' | 'used' | 'dismissed' | 'refunded' | 'gone'
type Step = readonly [
  kind: 'arrive' | 'complete' | 'refuse' | 'dismiss' | 'refund' | 'fail' | 'take back' | 'move',
  share: number,
]

const steps = fc.array(
  fc.tuple(
    fc.constantFrom<Step[0][]>('arrive', 'complete', 'refuse', 'dismiss', 'refund', 'fail', 'take back', 'move'),
    fc.integer({ min: 0, max: 150 }),
  ),
  { maxLength: 30 },
)

function shift(units: Fate[], from: readonly Fate[], to: Fate, count: number): void {
  let rest = count
  for (const place of from)
    for (const [index, unit] of units.entries())
      if (rest > 0 && unit === place) {
        units[index] = to
        rest -= 1
      }
}
const countOf = (units: readonly Fate[], ...fates: readonly Fate[]) =>
  units.filter((unit) => fates.includes(unit)).length

function take(balance: Balance, units: Fate[], [kind, share]: Step): Balance {
  const upTo = (most: number): number => Math.min(share, most)
  switch (kind) {
    case 'arrive':
      for (let unit = 0; unit < share; unit += 1) units.push('left')
      return balanceAfterArrival(balance, share)
    case 'complete':
    case 'refuse': {
      const kept = countOf(units, 'left', 'used', 'dismissed')
      shift(units, ['left', 'used', 'dismissed'], 'left', kept)
      if (kind === 'complete') shift(units, ['left'], 'used', Math.min(kept, PRICE))
      return balanceAfterCompletion(balance, PRICE, kind === 'complete')
    }
    case 'dismiss':
      shift(units, ['left'], 'dismissed', Infinity)
      return balanceAfterDismissal(balance)
    case 'refund': {
      const amount = upTo(keptOf(balance))
      shift(units, ['left', 'dismissed', 'used'], 'refunded', amount)
      return balanceAfterRefund(balance, amount)
    }
    case 'fail': {
      const amount = upTo(balance.amountRefunded)
      shift(units, ['refunded'], 'gone', amount)
      return balanceAfterFailedRefund(balance, amount)
    }
    case 'take back': {
      const amount = upTo(keptOf(balance))
      const before = balance.amountUsed
      const after = balanceAfterRefund(balance, amount)
      const wasDismissed = movableOf(balance) - balance.amountLeft
      if (wasDismissed > 0) return balance
      return balanceAfterRefusedRefund(after, amount, before - after.amountUsed, true)
    }
    case 'move': {
      const amount = upTo(movableOf(balance))
      shift(units, ['left', 'dismissed'], 'gone', amount)
      return balanceAfterMove(balance, amount)
    }
  }
}

describe('the arithmetic of received, refunded, used and left', () => {
  it('is what counting each unit of money by itself gives, whatever happens in whatever order', () => {
    fc.assert(
      fc.property(steps, (history) => {
        const units: Fate[] = []
        const end = history.reduce((balance, step) => take(balance, units, step), EMPTY)
        expect(end).to.deep.equal({
          amountReceived: units.length - countOf(units, 'gone'),
          amountRefunded: countOf(units, 'refunded'),
          amountUsed: countOf(units, 'used'),
          amountLeft: countOf(units, 'left'),
        })
        expect(movableOf(end)).to.equal(countOf(units, 'left', 'dismissed'))
        expect(dueOf({ ...end, amount: PRICE })).to.equal(Math.max(0, PRICE - keptOf(end)))
      }),
      { numRuns: 500 },
    )
  })

  it('a refund that the provider refused leaves everything as it was', () => {
    fc.assert(
      fc.property(fc.nat(300), fc.boolean(), fc.nat(300), (received, isGiven, share) => {
        const before = balanceAfterCompletion(balanceAfterArrival(EMPTY, received), PRICE, isGiven)
        const amount = Math.min(share, keptOf(before))
        const after = balanceAfterRefund(before, amount)
        expect(balanceAfterRefusedRefund(after, amount, before.amountUsed - after.amountUsed, true)).to.deep.equal(
          before,
        )
      }),
    )
  })

  it('never gives back or moves more than there is', () => {
    fc.assert(
      fc.property(fc.nat(300), fc.boolean(), fc.integer({ min: 1, max: 300 }), (received, isGiven, more) => {
        const balance = balanceAfterCompletion(balanceAfterArrival(EMPTY, received), PRICE, isGiven)
        expect(() => balanceAfterRefund(balance, keptOf(balance) + more)).to.throw(RangeError)
        expect(() => balanceAfterMove(balance, movableOf(balance) + more)).to.throw(RangeError)
      }),
    )
  })

  it('takes an amount from the newest parts first, exactly', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(100)), fc.nat(1000), (amounts, wanted) => {
        const parts = amounts.map((kept, index) => ({ kept, index }))
        const all = amounts.reduce((sum, amount) => sum + amount, 0)
        if (wanted > all) return void expect(() => takeNewest(wanted, parts)).to.throw(RangeError)
        const taken = takeNewest(wanted, parts)
        expect(taken.reduce((sum, { amount }) => sum + amount, 0)).to.equal(wanted)
        const oldest = taken.at(-1)
        for (const { part, amount } of taken.slice(0, -1)) expect(amount).to.equal(part.kept)
        for (const { kept, index } of parts)
          if (oldest && index > oldest.part.index && kept > 0)
            expect(taken.some(({ part }) => part.index === index)).to.equal(true)
      }),
    )
  })
})
