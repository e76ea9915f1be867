import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { viewCheckout } from '#checkout/view-checkout.ts'
import { inTransaction } from '#commands/transaction.ts'
import { bigint } from '#db/columns.ts'
import { isRetryable } from '#db/database-error.ts'
import { queriesOver, type Send } from '#db/queries.ts'
import { shape } from '#db/table.ts'
import { lockEndUserOf } from '#subscriptions/store.ts'
import { transactions } from '#transactions/store.ts'
import { MONTHLY, tokenOf } from '../support/factories.ts'
import { startScenario, type PayableCheckout, type Scenario } from '../support/scenario.ts'

const NO_TRANSACTION = 999_999

/** The trial `kill-storm` kills statements. Here are the answers that it met, each as it comes from the driver. */
describe('a statement that was killed, and answered as if its subquery had found nothing', () => {
  let scenario: Scenario
  let checkout: PayableCheckout

  beforeEach(async () => {
    scenario = await startScenario()
    const { prices } = await scenario.plan('pro', MONTHLY)
    checkout = await scenario.checkout({ price_id: prices[0] })
  })

  afterEach(() => scenario.service.stop())

  const failureOf = async (work: Promise<unknown>): Promise<Error> => {
    const error = await work.then(
      () => null,
      (thrown: unknown) => thrown,
    )
    expect(error).to.be.instanceOf(Error)
    expect(isRetryable(error), String(error)).to.equal(true)
    return error as Error
  }

  it('fails where a value that is never null is missing, so that the read runs again', async () => {
    const asked = scenario.service.ctx.db.one(shape({ taken: bigint() }), 'SELECT NULL AS taken')
    expect((await failureOf(asked)).message).to.equal('the server ended a statement before it had read taken')
  })

  for (const column of ['isProcessing', 'hasPromotionUse', 'enabledMethods'])
    it(`shows no checkout without its ${column}`, async () => {
      const { ctx } = scenario.service
      const send: Send = async (sql, params) =>
        ((await ctx.db.pool.send(sql, params)) as object[]).map((row) => ({ ...row, [column]: null }))
      const view = viewCheckout({ ...ctx, db: { ...ctx.db, ...queriesOver(send) } }, tokenOf(checkout))
      expect((await failureOf(view)).message).to.contain(column)
    })

  it('locks the end user of a payment on the next attempt, and takes only a transaction that is not there for unknown', async () => {
    const { ctx } = scenario.service
    let attempts = 0
    const lock = (transactionId: number) =>
      inTransaction(ctx, (tx) => {
        attempts += 1
        return lockEndUserOf(
          attempts === 1 ? { ...tx, run: () => Promise.resolve(0) } : tx,
          transactions,
          transactionId,
        )
      })
    expect(await lock(checkout.transaction_id)).to.equal(true)
    expect(attempts).to.equal(2)
    expect(await lock(NO_TRANSACTION)).to.equal(false)
  })
})
