import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import type { Queries } from '#db/queries.ts'
import { getSubscription, subscriptions } from '#subscriptions/store.ts'
import { verifyLedger } from '#transactions/ledger.ts'
import { MONTHLY, YEARLY } from '../support/factories.ts'
import { startStory, type Story } from '../support/story.ts'

describe('ledger verify replays the lines of a subscription in order (contract 7)', () => {
  let story: Story
  let month: string | undefined
  let year: string | undefined

  beforeEach(async () => {
    story = await startStory()
    month = (await story.plan('basic', MONTHLY)).prices[0]
    year = (await story.plan('gold', YEARLY)).prices[0]
  })
  afterEach(() => story.service.stop())

  const faults = async (): Promise<string[]> =>
    (await verifyLedger(story.service.ctx, story.app.app.id)).faults.map(({ fault }) => fault)
  const change = (sql: string, params: readonly (string | number)[] = []) =>
    story.service.ctx.db.query(sql, [...params])
  const buy = async (price: string | undefined): Promise<void> => {
    await story.pay(await story.checkout({ price_id: price }))
    story.service.ctx.clock.advance('5m')
  }
  const switchTo = (price: string | undefined) =>
    story.seller.put('/api/v1/subscriptions/user-1/plan', { price_id: price })
  const id = async (): Promise<number> => (await getSubscription(story.service.ctx.db, story.app.app.id, 'user-1')).id

  it('finds nothing where every line is what its quote and the decisions before it give', async () => {
    await buy(month)
    await switchTo(year)
    await buy(year)
    await buy(month)
    expect(await faults()).to.deep.equal([])
  })

  it('finds nothing in a subscription that is paid for between the reading of its row and of its lines', async () => {
    await buy(month)
    const { ctx } = story.service
    let isPaidMeanwhile = false
    const all: Queries['all'] = async (source, text, params) => {
      const rows = await ctx.db.all(source, text, params)
      if ((source as object) === subscriptions && !isPaidMeanwhile) {
        isPaidMeanwhile = true
        await buy(month)
      }
      return rows
    }
    const report = await verifyLedger({ ...ctx, db: { ...ctx.db, all } }, story.app.app.id)
    expect(isPaidMeanwhile).to.equal(true)
    expect(report).to.deep.equal({ checked: 1, faults: [] })
  })

  it('reports a period that a later line shortened without a decision behind it', async () => {
    await buy(year)
    await buy(month)
    // As a version did that asked for nothing but the plan: the month had been opened before the year was bought.
    await change(`UPDATE payment_applications SET opened_at = '2026-02-01 00:00:00' WHERE kind = 'restarted'`)
    expect(await faults()).to.deep.equal([
      'revision 2 ends 2026-04-01 10:05:00 what was paid until 2027-03-01 10:00:00, and no decision is behind it',
    ])
  })

  it('reports an extension that undid a plan switch', async () => {
    await buy(month)
    const late = await story.checkout({ price_id: month })
    story.service.ctx.clock.advance('5m')
    await switchTo(year)
    await story.arrives(late)
    expect(await faults()).to.deep.equal([])
    const sub = await id()
    await change(
      `UPDATE payment_applications a JOIN payment_applications b ON b.subscription_id = a.subscription_id AND b.kind = 'started'
       SET a.plan_id = b.plan_id, a.price_id = b.price_id WHERE a.kind = 'extended' AND a.subscription_id = ?`,
      [sub],
    )
    const found = await faults()
    expect(found[0]).to.match(/^revision 3 is extended on price \d+, and the rules say extended on price \d+/)
    expect(found[1]).to.equal('has another plan or price than its ledger')
  })

  it('reports a plan switch that moved the end, and an end at another time than its own', async () => {
    await buy(month)
    await switchTo(year)
    await change(`UPDATE payment_applications SET end_after = '2026-05-01 10:00:00' WHERE kind = 'switched'`)
    expect(await faults()).to.include('revision 2 is a plan switch that moves the end')
    await change(`UPDATE payment_applications SET kind = 'ended' WHERE kind = 'switched'`)
    expect(await faults()).to.include('revision 2 is an end at another time than its own')
  })

  it('holds a line of a version that kept no quotes against its arithmetic alone', async () => {
    await buy(year)
    await buy(month)
    await change(`UPDATE payment_applications SET opened_at = NULL`)
    await change(`UPDATE transactions SET created_at = '2026-02-01 00:00:00' WHERE amount = ?`, [MONTHLY.amount])
    expect(await faults()).to.deep.equal([])
    await change(`UPDATE payment_applications SET end_after = '2026-04-09 10:05:00' WHERE kind = 'restarted'`)
    expect(await faults()).to.include('revision 2 ends 2026-04-09 10:05:00, and its interval gives 2026-04-01 10:05:00')
  })
})
