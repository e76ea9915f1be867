import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { parse } from 'csv-parse/sync'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { getApp } from '#apps/store.ts'
import { updateApp } from '#apps/update-app.ts'
import { operator } from '#commands/caller.ts'
import { perform } from '#commands/perform.ts'
import { inTransaction } from '#commands/transaction.ts'
import type { Context } from '#context.ts'
import { movePayment } from '#decisions/move-payment.ts'
import { makeDemo } from '#demo/make-demo.ts'
import { payments } from '#payments/store.ts'
import { exportSales } from '#reports/sales/export-sales.ts'
import { mergeSorted } from '#reports/sales/merge-sorted.ts'
import { gatherStats } from '#reports/stats.ts'
import { currencyDecimals } from '#shared/money.ts'
import { recordForeignRefund } from '#transactions/record-foreign-refund.ts'
import { transactions } from '#transactions/store.ts'
import { realTimeContext, testContext, type TestContext } from '../support/context.ts'
import {
  aCheckout,
  aCustomer,
  anApp,
  aPlan,
  aPromotion,
  LIFETIME,
  MONTHLY,
  priceId,
  reportPayment,
  transferred,
  type TestApp,
} from '../support/factories.ts'
import { addBankAccount, assignBankAccount } from '../support/operators.ts'
import { scratchFolder } from '../support/scratch.ts'

const MAI = operator('mai')
const COLUMNS =
  'date,transaction_id,external_ref,customer,plan,method,reference,gross,discount,promotion_code,amount,currency,refunded,period_from,period_to'

describe('sales.csv', () => {
  /** Sandbox apps have their own clock, so that only live apps have the times of payments. */
  async function aShop() {
    const ctx = testContext()
    const app = await anApp(ctx, { sandbox: false })
    await perform(ctx, MAI, updateApp, { time_zone: 'Asia/Ho_Chi_Minh' }, { app: app.app })
    const usd = { ...MONTHLY, amount: 1499, currency: 'USD' }
    const plan = await aPlan(ctx, app, { code: 'premium', prices: [MONTHLY, usd, LIFETIME] })
    return { ctx, app, plan }
  }

  let references = 0
  async function arrives(ctx: TestContext, transactionId: number, amount: number, currency: string): Promise<string> {
    const reference = `FT${(references += 1)}`
    const money = { transactionId, amount, currency, paidAt: ctx.clock.now() }
    await reportPayment(ctx, {
      provider: currency === 'VND' ? 'bank_transfer' : 'stripe',
      eventId: null,
      reference,
      ...money,
    })
    return reference
  }

  async function exported(ctx: Context, { app }: TestApp) {
    const folder = join(scratchFolder('sales'), 'out')
    const count = await exportSales(ctx, await getApp(ctx.db, app.id), folder)
    const text = readFileSync(join(folder, 'sales.csv'), 'utf8')
    const rows: Record<string, string>[] = parse(text, { columns: true })
    expect(rows).to.have.length(count)
    return { text, rows }
  }

  it('has a row for each payment and each refund, in decimals and the app’s time zone', async () => {
    const { ctx, app, plan } = await aShop()
    const customer_id = `cus_${(await aCustomer(ctx, app, { name: '=HYPERLINK("x")' })).id}`
    const { transaction_id: id } = await aCheckout(ctx, app, { price_id: priceId(plan, 1), customer_id })
    ctx.clock.set('2026-03-31 20:15:30')
    const reference = await arrives(ctx, id!, 1499, 'USD')
    ctx.clock.set('2026-04-02 08:00:00')
    const [payment] = await ctx.db.all(payments, 'WHERE reference = ?', [reference])
    const back = { reference: 'BACK', amount: 500, status: 'succeeded' } as const
    await inTransaction(ctx, async (tx) => recordForeignRefund(tx, payment!.id, back))
    const { text, rows } = await exported(ctx, app)
    expect(text.split('\n')[0]).to.equal(COLUMNS)
    const sold = {
      transaction_id: String(id),
      external_ref: 'user-1',
      customer: `'=HYPERLINK("x")`,
      plan: 'premium',
      method: 'card',
      discount: '0.00',
      promotion_code: '',
      currency: 'USD',
      period_from: '2026-04-01 03:15:30',
      period_to: '2026-05-01 03:15:30',
    }
    expect(rows).to.deep.equal([
      { ...sold, date: '2026-04-01 03:15:30', reference, gross: '14.99', amount: '14.99', refunded: '0.00' },
      { ...sold, date: '2026-04-02 15:00:00', reference: 'BACK', gross: '0.00', amount: '0.00', refunded: '5.00' },
    ])
  })

  it('shows parts as they came, the discount with the payment that completed, and no end of lifetime', async () => {
    const { ctx, app, plan } = await aShop()
    const { transaction_id: id } = await aCheckout(ctx, app, { price_id: priceId(plan, 2) })
    await aPromotion(ctx, app, { code: 'TET' })
    await ctx.db.update(transactions, { id: id! }, { amount: 2_000_000, discountAmount: 900_000, promotionCode: 'TET' })
    await arrives(ctx, id!, 1_500_000, 'VND')
    ctx.clock.advance('1d')
    await arrives(ctx, id!, 500_000, 'VND')
    const { rows } = await exported(ctx, app)
    expect(
      rows.map((row) => [row['gross'], row['discount'], row['promotion_code'], row['amount'], row['period_to']]),
    ).to.deep.equal([
      ['1500000', '0', '', '1500000', ''],
      ['1400000', '900000', 'TET', '500000', ''],
    ])
    expect(rows.map((row) => row['period_from'])).to.deep.equal(['2026-03-02 17:00:00', '2026-03-02 17:00:00'])
  })

  it('names the promotion of a purchase that the smaller part of a payment completed', async () => {
    const { ctx, app, plan } = await aShop()
    await aPromotion(ctx, app, { code: 'TET' })
    const bought = await aCheckout(ctx, app, { price_id: priceId(plan), external_ref: 'a' })
    const wanted = await aCheckout(ctx, app, { price_id: priceId(plan), external_ref: 'a', promotion_code: 'TET' })
    await arrives(ctx, bought.transaction_id!, 178_200, 'VND')
    const payment = await ctx.db.one(payments, '')
    const move = { payment_id: payment!.id, transaction_id: wanted.transaction_id!, note: 'both in one transfer' }
    await movePayment(ctx, MAI, move)
    const { rows } = await exported(ctx, app)
    expect(rows).to.have.length(1)
    expect(rows[0]).to.include({
      transaction_id: String(bought.transaction_id),
      gross: '198000',
      discount: '19800',
      promotion_code: 'TET',
      amount: '178200',
    })
  })

  it('names no transaction of another app, from which a part of the money was moved', async () => {
    const { ctx, app, plan } = await aShop()
    const other = await anApp(ctx, { sandbox: false })
    const book = await aPlan(ctx, other, { code: 'book', prices: [{ ...MONTHLY, amount: 9_000 }] })
    const account = await addBankAccount(ctx, 'mai', { bank: 'ACB', number: '123456', holder: 'AN' })
    for (const each of [app, other]) await assignBankAccount(ctx, 'mai', each.app, account.id)
    const bought = await aCheckout(ctx, app, { price_id: priceId(plan), external_ref: 'a' })
    const wanted = await aCheckout(ctx, other, { price_id: priceId(book), external_ref: 'b' })
    await transferred(ctx, bought.transaction_id!, 108_000, { bankAccountId: account.id })
    const payment = await ctx.db.one(payments, '')
    const move = { payment_id: payment!.id, transaction_id: wanted.transaction_id!, note: 'both in one transfer' }
    await movePayment(ctx, MAI, move)
    const { rows } = await exported(ctx, other)
    expect(rows.map((row) => [row['external_ref'], row['plan']])).to.deep.equal([['b', 'book']])
    const { month } = await gatherStats(ctx, { app: other.app })
    expect(Object.keys(month.by_plan)).to.deep.equal(['book'])
  })

  it('has its first line where nothing was sold, and no money of an unknown payer', async () => {
    const { ctx, app } = await aShop()
    expect((await exported(ctx, app)).text).to.equal(`${COLUMNS}\n`)
  })

  it('has every page, and adds up to the money in stats', async () => {
    const ctx = realTimeContext()
    const app = await getApp(ctx.db, (await makeDemo(ctx, MAI)).app_id)
    const { rows } = await exported(ctx, { app } as TestApp)
    const { revenue } = await gatherStats(ctx, { app })
    for (const { currency, received, refunded, payments } of revenue) {
      const own = rows.filter((row) => row['currency'] === currency)
      const total = (column: string): number =>
        own.reduce((sum, row) => sum + Math.round(Number(row[column]) * 10 ** currencyDecimals(currency)), 0)
      expect([total('amount'), total('refunded')]).to.deep.equal([Number(received), Number(refunded)])
      expect(total('gross') - total('discount')).to.equal(Number(received))
      expect(own.filter((row) => Number(row['amount']) > 0)).to.have.length(payments)
    }
    expect(rows.map((row) => row['date'])).to.deep.equal(rows.map((row) => row['date']).sort())
  })

  it('puts the values of ordered sources into one order', async () => {
    async function* each(values: readonly number[]) {
      for (const value of values) yield await Promise.resolve(value)
    }
    const sorted = fc.array(fc.nat(50)).map((values) => values.sort((a, b) => a - b))
    await fc.assert(
      fc.asyncProperty(fc.array(sorted, { maxLength: 4 }), async (lists) => {
        const merged = []
        for await (const value of mergeSorted(lists.map(each), (value) => value)) merged.push(value)
        expect(merged).to.deep.equal(lists.flat().sort((a, b) => a - b))
      }),
    )
  })
})
