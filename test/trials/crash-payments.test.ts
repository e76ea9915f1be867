import { expect } from 'chai'
import { describe, it } from 'mocha'
import { crashPayments } from './crash-payments.ts'

describe('trial: payments while the daemon is killed', () => {
  it('60 payments at once while the daemon is killed with -9 and restarted three times: all complete, every event arrives, the ledger is clean', async function () {
    this.timeout(300_000)
    const figures = await crashPayments({ payments: 60, kills: 3 })
    expect(figures).to.include({ answered: 60, webhooks: 60 })
  })
})
