import { expect } from 'chai'
import { describe, it } from 'mocha'
import { mailFuzz } from './mail-fuzz.ts'

describe('trial: mutated mails at the relay’s endpoint', () => {
  it('300 mutated mails: each gets a decision, none is a payment, and no request waits for them', async () => {
    const figures = await mailFuzz({ mails: 300, seed: 22, connections: 4 })
    expect(figures.longestHoldMs).to.be.below(250)
  })
})
