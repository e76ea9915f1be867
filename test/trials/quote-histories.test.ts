import { expect } from 'chai'
import { describe, it } from 'mocha'
import { quoteHistories } from './quote-histories.ts'

describe('trial: random interleavings of open, switch, pay, end and complete', () => {
  it('60 histories: after each step plan, price, end, flags and pages are those of a model of the contract', async function () {
    this.timeout(120_000)
    const { payments, flags } = await quoteHistories({ histories: 60, seed: 7 })
    expect(payments).to.be.greaterThan(150)
    expect(Object.keys(flags)).to.include.members(['superseded', 'already_lifetime', 'duplicate_payment'])
  })
})
