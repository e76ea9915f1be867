import { expect } from 'chai'
import { describe, it } from 'mocha'
import { overload } from './overload.ts'

describe('trial: more requests than the daemon can answer', () => {
  it('three times as many checkouts as it can open: those that are too many are refused, and payments, webhooks and mails go on', async () => {
    const figures = await overload({
      perSecond: 1,
      times: 3,
      seconds: 6,
      capacitySeconds: 3,
      notifications: 10,
      reminders: 5,
      // How long it takes is up to what else the machine does meanwhile: other tests, say.
      mostP99Ms: 60_000,
      leastShare: 0.3,
    })
    // How many is up to what other trials leave of the machine once they have ended.
    expect(figures.refused).to.be.greaterThan(0)
  })
})
