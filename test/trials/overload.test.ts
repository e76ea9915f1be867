import { expect } from 'chai'
import { describe, it } from 'mocha'
import { overload } from './overload.ts'

describe('trial: more requests than the daemon can answer', () => {
  it('three times as many checkouts as it can open: the excess is refused, and payments, webhooks and mails continue', async () => {
    const figures = await overload({
      perSecond: 1,
      times: 3,
      seconds: 4,
      capacitySeconds: 2,
      notifications: 10,
      reminders: 5,
      // Times depend on what else the machine does, such as other tests.
      mostP99Ms: 60_000,
      leastShare: 0.3,
    })
    // The number depends on when other trials on the machine end.
    expect(figures.refused).to.be.greaterThan(0)
  })
})
