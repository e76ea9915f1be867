import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { verifyLedger } from '#ledger/verify-ledger.ts'
import { MONTHLY } from '../support/factories.ts'
import { startScenario, type Scenario } from '../support/scenario.ts'

describe('ledger verify reads a table in steps', () => {
  let scenario: Scenario
  beforeEach(async () => {
    scenario = await startScenario()
  })
  afterEach(() => scenario.service.stop())

  it('and finds the first and the last of thousands of rows, of all apps and of one', async () => {
    const { db } = scenario.service.ctx
    const plan = await scenario.plan('basic', MONTHLY)
    const { transaction_id: id } = await scenario.checkout({ price_id: plan.prices[0] })
    const columns = 'app_id, transaction_id, at, kind'
    const opened = `INSERT INTO transaction_changes (${columns})`
    await db.query(`${opened} VALUES (?, ?, '2026-03-01 10:00:00', 'bank_page')`, [scenario.app.app.id, id])
    for (let rows = 1; rows < 10_000; rows *= 2) await db.query(`${opened} SELECT ${columns} FROM transaction_changes`)
    for (const order of ['ASC', 'DESC'])
      await db.query(`UPDATE transaction_changes SET transaction_id = 999999 ORDER BY id ${order} LIMIT 1`)
    const [ends]: { first: string; last: string }[] = await db.query(
      'SELECT MIN(id) AS first, MAX(id) AS last FROM transaction_changes',
    )
    const fault = 'names a transaction that does not exist or is of another app'
    const expected = [ends!.first, ends!.last].map((row) => ({ subject: `transaction change ${row}`, fault }))
    for (const app of [null, scenario.app.app.id])
      expect((await verifyLedger(scenario.service.ctx, app)).faults).to.deep.equal(expected)
    const other = await verifyLedger(scenario.service.ctx, scenario.app.app.id + 1)
    expect(other).to.deep.equal({ checked: 0, faults: [] })
  })
})
