import { expect } from 'chai'
import { describe, it } from 'mocha'
import { listPayments } from '#payments/list-payments.ts'
import { payments } from '#payments/store.ts'
import { addMs, MINUTE_MS } from '#shared/time.ts'
import { testDatabase } from '../support/database.ts'
import { MONTHLY } from '../support/factories.ts'
import { insertMany, rowsLike } from '../support/many-rows.ts'
import { refreshStatistics } from '../support/query-plans.ts'
import { rowsReadBy } from '../support/rows-read.ts'
import { startScenario } from '../support/scenario.ts'

const PAYMENTS = 3000
const A_PAGE_AND_WHAT_WAITS = 200

describe('the list of payments', () => {
  it('reads those of its page from an index, however many there are', async () => {
    const scenario = await startScenario()
    const { ctx } = scenario.service
    const { prices } = await scenario.plan('pro', MONTHLY)
    await scenario.pay(await scenario.checkout({ price_id: prices[0] }))
    const paid = await ctx.db.single(payments, 'LIMIT 1')
    const older = rowsLike(paid, PAYMENTS, (n) => ({
      reference: `copy-${n}`,
      receivedAt: addMs(paid.receivedAt, -n * MINUTE_MS),
    }))
    await insertMany(ctx.db, payments, older)
    await refreshStatistics(testDatabase().db, payments)
    const list = (cursor: string | null) =>
      rowsReadBy(ctx, (inTx) =>
        listPayments(inTx, { appId: null, waiting: false }, { limit: '20', ...(cursor === null ? {} : { cursor }) }),
      )
    const [first, forFirst] = await list(null)
    const [second, forSecond] = await list(first.nextCursor)
    expect([first.rows.length, second.rows.length]).to.deep.equal([20, 20])
    expect(forFirst).to.be.below(A_PAGE_AND_WHAT_WAITS)
    expect(forSecond).to.be.below(A_PAGE_AND_WHAT_WAITS)
    await scenario.service.stop()
  })
})
