import { expect } from 'chai'
import { describe, it } from 'mocha'
import { OUTAGES, realtimeOutage } from './realtime-outage.ts'

describe('trial: outages of the realtime database', () => {
  for (const [index, outage] of OUTAGES.entries()) {
    it(`${outage}: every payment completes, calls return within 6 s, and a re-sync of the failed nodes writes their current state`, async () => {
      const seed = 20_260_301 + index
      const figures = await realtimeOutage(outage, 6, seed)
      expect(figures.payments).to.be.at.least(6)
      expect(figures.failedWrites, `seed ${seed}`).to.be.at.least(1)
      expect(figures.resynced).to.be.at.least(figures.failedWrites)
    })
  }
})
