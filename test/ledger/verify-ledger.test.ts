import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import type { Queries } from '#db/queries.ts'
import { getSubscription, subscriptions } from '#subscriptions/store.ts'
import { verifyLedger } from '#ledger/verify-ledger.ts'
import { MONTHLY, YEARLY } from '../support/factories.ts'
import { startScenario, type Scenario } from '../support/scenario.ts'

describe('ledger verify replays the lines of a subscription in order', () => {
  let scenario: Scenario
  let month: string | undefined
  let year: string | undefined

  beforeEach(async () => {
    scenario = await startScenario()
    month = (await scenario.plan('basic', MONTHLY)).prices[0]
    year = (await scenario.plan('gold', YEARLY)).prices[0]
  })
  afterEach(() => scenario.service.stop())

  const discrepancies = async (): Promise<string[]> =>
    (await verifyLedger(scenario.service.ctx, scenario.app.app.id)).faults.map(({ fault }) => fault)
  const change = (sql: string, params: readonly (string | number)[] = []) =>
    scenario.service.ctx.db.query(sql, [...params])
  const buy = async (price: string | undefined): Promise<void> => {
    await scenario.pay(await scenario.checkout({ price_id: price }))
    scenario.service.ctx.clock.advance('5m')
  }
  const switchTo = (price: string | undefined) =>
    scenario.seller.put('/api/v1/subscriptions/user-1/plan', { price_id: price })
  const id = async (): Promise<number> =>
    (await getSubscription(scenario.service.ctx.db, scenario.app.app.id, 'user-1')).id

  it('finds nothing if every line follows from its quote and the earlier decisions', async () => {
    await buy(month)
    await switchTo(year)
    await buy(year)
    await buy(month)
    expect(await discrepancies()).to.deep.equal([])
  })

  it('finds nothing in a subscription that is paid for between the reading of its row and of its lines', async () => {
    await buy(month)
    const { ctx } = scenario.service
    let isPaidMeanwhile = false
    const all: Queries['all'] = async (source, text, params) => {
      const rows = await ctx.db.all(source, text, params)
      if ((source as object) === subscriptions && !isPaidMeanwhile) {
        isPaidMeanwhile = true
        await buy(month)
      }
      return rows
    }
    const report = await verifyLedger({ ...ctx, db: { ...ctx.db, all } }, scenario.app.app.id)
    expect(isPaidMeanwhile).to.equal(true)
    expect(report).to.deep.equal({ checked: 1, faults: [] })
  })

  it('reports a period that a later line shortened without a decision behind it', async () => {
    await buy(year)
    await buy(month)
    // As a version did that asked for nothing but the plan: the month had been opened before the year was bought.
    await change(`UPDATE payment_applications SET opened_at = '2026-02-01 00:00:00' WHERE kind = 'restarted'`)
    expect(await discrepancies()).to.deep.equal([
      'revision 2 moves a paid end from 2027-03-01 10:00:00 back to 2026-04-01 10:05:00 without a decision',
    ])
  })

  it('reports an extension that undid a plan switch', async () => {
    await buy(month)
    const late = await scenario.checkout({ price_id: month })
    scenario.service.ctx.clock.advance('5m')
    await switchTo(year)
    await scenario.reportTransfer(late)
    expect(await discrepancies()).to.deep.equal([])
    const sub = await id()
    await change(
      `UPDATE payment_applications a JOIN payment_applications b ON b.subscription_id = a.subscription_id AND b.kind = 'started'
       SET a.plan_id = b.plan_id, a.price_id = b.price_id WHERE a.kind = 'extended' AND a.subscription_id = ?`,
      [sub],
    )
    const found = await discrepancies()
    expect(found[0]).to.match(/^revision 3 is extended on price \d+, but the rules say extended on price \d+/)
    expect(found[1]).to.equal('has a different plan or price than its ledger')
  })

  it('reports a plan switch that moved the end, and an ending that did not end the period at its own time', async () => {
    await buy(month)
    await switchTo(year)
    await change(`UPDATE payment_applications SET end_after = '2026-05-01 10:00:00' WHERE kind = 'switched'`)
    expect(await discrepancies()).to.include('revision 2 is a plan switch that moves the end')
    await change(`UPDATE payment_applications SET kind = 'ended' WHERE kind = 'switched'`)
    expect(await discrepancies()).to.include('revision 2 is an end that does not end the period at its own time')
  })

  it('holds a line of a version that kept no quotes against its arithmetic alone', async () => {
    await buy(year)
    await buy(month)
    await change(`UPDATE payment_applications SET opened_at = NULL`)
    await change(`UPDATE transactions SET created_at = '2026-02-01 00:00:00' WHERE amount = ?`, [MONTHLY.amount])
    expect(await discrepancies()).to.deep.equal([])
    await change(`UPDATE payment_applications SET end_after = '2026-04-09 10:05:00' WHERE kind = 'restarted'`)
    expect(await discrepancies()).to.include(
      'revision 2 ends 2026-04-09 10:05:00, but its interval gives 2026-04-01 10:05:00',
    )
  })
})
