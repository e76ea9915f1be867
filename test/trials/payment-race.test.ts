import { expect } from 'chai'
import { describe, it } from 'mocha'
import { paymentRace } from './payment-race.ts'

describe('trial: everybody confirms one payment at the same instant', () => {
  it('card, bank, operator and polls at two daemons, 12 payments, for a month, for life and twice for life: each is completed once, and what came too much is flagged', async () => {
    const { winners, doubleLifetimes } = await paymentRace({ rounds: 12, seed: 3 })
    expect(Object.values(winners).reduce((sum, count) => sum + count, 0)).to.equal(10)
    expect(doubleLifetimes).to.equal(2)
  })
})
