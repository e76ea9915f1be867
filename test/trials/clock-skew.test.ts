import { expect } from 'chai'
import { describe, it } from 'mocha'
import { TOLERATED_SKEW_MS, clockSkew } from './clock-skew.ts'

describe('trial: two senders whose clocks differ', () => {
  it('by as much as is tolerated: no lease is taken early, each webhook and each mail goes out once', async function () {
    this.timeout(60_000)
    const figures = await clockSkew({ skewMs: TOLERATED_SKEW_MS, events: 20 })
    expect(figures).to.include({ repeated: 0, mails: 20 })
  })

  it('by 10 minutes: every webhook arrives, under one event id where it arrives again, and each mail goes out once', async function () {
    this.timeout(60_000)
    const figures = await clockSkew({ skewMs: 600_000, events: 20 })
    expect(figures.mails).to.equal(20)
  })
})
