import { expect } from 'chai'
import { describe, it } from 'mocha'
import { deadlockStorm } from './deadlock-storm.ts'

describe('trial: rivals lock the same rows in the opposite order', () => {
  it('25 payments, reported twice each, against 6 rivals: conflicts are retried, and no payment is booked in part', async () => {
    const { retries, seed } = await deadlockStorm({ payments: 25, rivals: 6, seed: 18 })
    expect(retries, `seed ${seed}`).to.be.at.least(1)
  })
})
