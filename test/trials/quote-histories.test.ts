import { expect } from 'chai'
import { describe, it } from 'mocha'
import { quoteHistories } from './quote-histories.ts'

describe('trial: random interleavings of open, switch, pay, refund, end and complete', () => {
  it('30 histories: after each step plan, price, end, money, flags and pages agree with a model of the rules', async () => {
    const { payments, discounted, refunded, flags } = await quoteHistories({ histories: 30, seed: 4 })
    expect(payments).to.be.greaterThan(50)
    expect(discounted).to.be.greaterThan(20)
    expect(refunded).to.be.greaterThan(10)
    expect(Object.keys(flags)).to.include.members(['superseded', 'already_lifetime', 'duplicate_payment'])
  })
})
