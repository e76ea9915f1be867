import { expect } from 'chai'
import { describe, it } from 'mocha'
import { paymentRace } from './payment-race.ts'

describe('trial: one payment is confirmed from all sides at the same time', () => {
  it('card, bank, operator and polls at two daemons, 12 payments, monthly, lifetime and lifetime twice: each is completed once, and surplus money is flagged', async () => {
    const { winners, doubleLifetimes } = await paymentRace({ rounds: 12, seed: 3 })
    expect(Object.values(winners).reduce((sum, count) => sum + count, 0)).to.equal(10)
    expect(doubleLifetimes).to.equal(2)
  })
})
