import { expect } from 'chai'
import { describe, it } from 'mocha'
import { DATABASE_OUTAGES, databaseOutage } from './database-outage.ts'

describe('trial: payments while the database is taken away', () => {
  it('its server is restarted, killed with -9 and frozen under 40 payments each: refusals are faults of ours that can be tried again, payments go on within 10 s, what answered is complete', async () => {
    const figures = await databaseOutage({ outages: DATABASE_OUTAGES, payments: 40, payers: 15, frozenMs: 1000 })
    expect(figures.map(({ outage }) => outage)).to.deep.equal(['restart', 'kill', 'freeze'])
  })
})
