import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { payments } from '#payments/store.ts'
import { openLossyDatabase, strikeFirstCommit, type LossyDatabase } from '../db/lossy-server.ts'
import { testDatabase } from '../support/database.ts'
import { MONTHLY } from '../support/factories.ts'
import { startScenario, type Scenario } from '../support/scenario.ts'

describe('a payment by the test method whose COMMIT is not answered', () => {
  let scenario: Scenario
  let lossy: LossyDatabase

  beforeEach(async () => {
    scenario = await startScenario()
    lossy = await openLossyDatabase()
    Object.assign(scenario.service.ctx, { db: lossy.db })
  })
  afterEach(async () => {
    Object.assign(scenario.service.ctx, { db: testDatabase().db })
    await lossy.close()
    await scenario.service.stop()
  })

  for (const fate of ['answer lost', 'lost'] as const) {
    it(`("${fate}") is answered as paid, and counts once`, async () => {
      const price_id = (await scenario.plan('pro', MONTHLY)).prices[0]!
      scenario.at('2026-03-01 10:00:00')
      const checkout = await scenario.checkout({ price_id })
      const commits = strikeFirstCommit(lossy.line, fate)
      await scenario.pay(checkout)
      expect(commits()).to.equal(2)
      expect(await scenario.service.ctx.db.all(payments, 'WHERE 1 = 1')).to.have.length(1)
      expect(await scenario.transaction(checkout.transaction_id)).to.include({ status: 'completed' })
      expect((await scenario.subscription()).current_period_end).to.equal('2026-04-01 10:00:00')
      const emitted = (await scenario.newEvents()).map(({ type }) => type)
      expect(emitted).to.deep.equal(['subscription.updated'])
    })
  }
})
