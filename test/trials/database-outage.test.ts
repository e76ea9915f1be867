import { expect } from 'chai'
import { describe, it } from 'mocha'
import { DATABASE_OUTAGES, databaseOutage } from './database-outage.ts'

describe('trial: payments during database outages', () => {
  it('the server is restarted, killed with -9 and frozen under 40 payments each: refusals can be retried, payments continue within 10 s, every answered payment is complete', async () => {
    const figures = await databaseOutage({ outages: DATABASE_OUTAGES, payments: 40, payers: 15, frozenMs: 1000 })
    expect(figures.map(({ outage }) => outage)).to.deep.equal(['restart', 'kill', 'freeze'])
  })
})
