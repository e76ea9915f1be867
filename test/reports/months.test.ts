import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { getApp, type App } from '#apps/store.ts'
import { updateApp } from '#apps/update-app.ts'
import { operator } from '#commands/caller.ts'
import { perform } from '#commands/perform.ts'
import { movePayment } from '#decisions/move-payment.ts'
import { resolveTransaction } from '#decisions/resolve-transaction.ts'
import { makeDemo } from '#demo/make-demo.ts'
import { payments } from '#payments/store.ts'
import { localTimestamp, monthAfter, monthOf, rangeOf } from '#reports/month.ts'
import { renewalRates } from '#reports/movements/renewal-rates.ts'
import type { MonthFigures } from '#reports/months.ts'
import { figuresOf, type Amounts, type SalesLine } from '#reports/sales/figures.ts'
import { gatherStats } from '#reports/stats.ts'
import { advanceTestClock } from '#test-clock/advance-test-clock.ts'
import { addMs } from '#shared/time.ts'
import { transactions } from '#transactions/store.ts'
import { realTimeContext, testContext, type TestContext } from '../support/context.ts'
import {
  aCheckout,
  aCustomer,
  anApp,
  aPlan,
  aPromotion,
  FREE_TRIAL,
  LIFETIME,
  MONTHLY,
  paid,
  priceId,
  reportPayment,
  SERVER,
  type TestApp,
  transferred,
} from '../support/factories.ts'

const MAI = operator('mai')
const ZONES = [
  'UTC',
  'Asia/Ho_Chi_Minh',
  'America/St_Johns',
  'Pacific/Kiritimati',
  'Europe/Berlin',
  'Pacific/Pago_Pago',
]

describe('a month', () => {
  const month = fc
    .record({ year: fc.integer({ min: 2000, max: 2100 }), number: fc.integer({ min: 1, max: 12 }) })
    .map(({ year, number }) => `${year}-${String(number).padStart(2, '0')}`)

  it('has the instants that clocks of its zone show as of it, and no others', () => {
    fc.assert(
      fc.property(month, fc.constantFrom(...ZONES), (name, zone) => {
        const { from, until } = rangeOf(name, zone)
        expect(localTimestamp(from, zone)).to.equal(`${name}-01 00:00:00`)
        expect(monthOf(addMs(until, -1), zone)).to.equal(name)
        expect(rangeOf(monthAfter(name, 1), zone).from.getTime()).to.equal(until.getTime())
      }),
    )
  })

  it('is reached from another by counting months, forth and back', () => {
    expect(monthAfter('2026-01', -1)).to.equal('2025-12')
    fc.assert(
      fc.property(month, fc.integer({ min: -30, max: 30 }), (name, count) => {
        expect(monthAfter(monthAfter(name, count), -count)).to.equal(name)
      }),
    )
  })
})

const amount = fc.bigInt({ min: 0n, max: 10n ** 18n })
const line: fc.Arbitrary<SalesLine> = fc.record({
  currency: fc.constantFrom('VND', 'USD', 'EUR'),
  plan: fc.constantFrom('basic', 'premium', '', '__proto__'),
  method: fc.constantFrom('card', 'bank_transfer'),
  received: amount,
  discounts: amount,
  refunds: amount,
})

describe('the figures of a month', () => {
  const totalOf = (parts: readonly (Amounts | undefined)[], currency: string): bigint =>
    parts.reduce((sum, part) => sum + (part?.[currency] ?? 0n), 0n)

  it('net is gross less discounts and refunds, and the sum of its parts by plan and by method', () => {
    fc.assert(
      fc.property(fc.array(line), (lines) => {
        const { gross, discounts, refunds, net, by_plan, by_method } = figuresOf(lines)
        for (const currency of ['VND', 'USD', 'EUR']) {
          const [sold, off, back, left] = [gross, discounts, refunds, net].map((sum) => totalOf([sum], currency))
          expect(left).to.equal(sold! - off! - back!)
          expect(totalOf(Object.values(by_plan), currency)).to.equal(left)
          expect(totalOf(Object.values(by_method), currency)).to.equal(left)
          expect(sold).to.equal(
            lines
              .filter((each) => each.currency === currency)
              .reduce((sum, each) => sum + each.received + each.discounts, 0n),
          )
        }
        expect(Object.keys(refunds)).to.deep.equal(Object.keys(gross))
      }),
    )
  })

  it('each renewal rate is a share of those who began, and never exceeds the one before', () => {
    const cohort = fc.record({
      month: fc.constantFrom('2026-01', '2026-02'),
      renewals: fc.nat(8),
      subscriptions: fc.integer({ min: 1, max: 1000 }),
    })
    fc.assert(
      fc.property(fc.array(cohort), (cohorts) => {
        for (const { start_month, size, rates } of renewalRates(cohorts)) {
          const own = cohorts.filter(({ month }) => month === start_month)
          expect(size).to.equal(own.reduce((sum, { subscriptions }) => sum + subscriptions, 0))
          expect(rates).to.have.length(Math.max(...own.map(({ renewals }) => renewals)))
          expect([1, ...rates]).to.deep.equal([1, ...rates].sort((a, b) => b - a))
          expect(rates.every((rate) => rate > 0 || size > 10_000)).to.equal(true)
        }
      }),
    )
    expect(
      renewalRates([
        { month: '2026-01', renewals: 0, subscriptions: 2 },
        { month: '2026-01', renewals: 2, subscriptions: 1 },
      ]),
    ).to.deep.equal([{ start_month: '2026-01', size: 3, rates: [0.3333, 0.3333] }])
  })
})

describe('stats of a month', () => {
  async function aShop() {
    const ctx = testContext()
    const app = await anApp(ctx)
    const plan = await aPlan(ctx, app, { code: 'premium', prices: [MONTHLY, { ...MONTHLY, amount: 50_000 }] })
    const buy = (who: string) => paid(ctx, app, { external_ref: who, price_id: priceId(plan) })
    const months = async (month?: string) =>
      gatherStats(ctx, { app: await getApp(ctx.db, app.app.id), ...(month === undefined ? {} : { month }) })
    return { ctx, app, plan, buy, months }
  }

  it('compare a month with the one before it and the same of last year', async () => {
    const { ctx, buy, months } = await aShop()
    await buy('a')
    await buy('b')
    ctx.clock.advance('30d')
    await buy('a')
    const { month, previous_month, same_month_last_year } = await months('2026-03')
    expect(month).to.deep.equal({
      month: '2026-03',
      gross: { VND: 297_000n },
      discounts: { VND: 0n },
      refunds: { VND: 0n },
      net: { VND: 297_000n },
      by_plan: { premium: { VND: 297_000n } },
      by_method: { test: { VND: 297_000n } },
      new: 2,
      renewed: 1,
      returned: 0,
      lapsed: 0,
    })
    expect(previous_month).to.include({ month: '2026-02', new: 0 })
    expect(same_month_last_year.month).to.equal('2025-03')
    expect((await months('2027-03')).same_month_last_year).to.deep.equal(month)
    expect((await months('2026-04')).previous_month).to.deep.equal(month)
  })

  it('count each payment once as new, renewed or returned, and each end that nobody paid for once as lapsed', async () => {
    const { ctx, buy, months } = await aShop()
    for (const who of ['stays', 'leaves', 'returns']) await buy(who)
    ctx.clock.advance('30d')
    await buy('stays')
    ctx.clock.set('2026-05-02 10:00:00')
    await buy('returns')
    const counts = async (month: string) => {
      const { month: found } = await months(month)
      return [found.new, found.renewed, found.returned, found.lapsed]
    }
    expect(await counts('2026-03')).to.deep.equal([3, 1, 0, 0])
    expect(await counts('2026-04')).to.deep.equal([0, 0, 0, 2])
    expect(await counts('2026-05')).to.deep.equal([0, 0, 1, 1])
    expect((await months()).renewal_rate).to.deep.equal([{ start_month: '2026-03', size: 3, rates: [0.3333] }])
  })

  it('lapsed counts by the end of the period, which a late payment does not undo', async () => {
    const { ctx, buy, months } = await aShop()
    await buy('late')
    ctx.clock.set('2026-04-01 09:59:59')
    expect((await months()).month).to.include({ month: '2026-04', lapsed: 0 })
    ctx.clock.set('2026-04-01 10:00:00')
    expect((await months()).month.lapsed).to.equal(1)
    await buy('late')
    expect((await months()).month).to.include({ lapsed: 1, returned: 1, renewed: 0 })
  })

  it('a discount counts once, with the payment that completed the purchase', async () => {
    const { ctx, app, plan, months } = await aShop()
    const session = await aCheckout(ctx, app, { price_id: priceId(plan), external_ref: 'a' })
    const transactionId = session.transaction_id!
    await aPromotion(ctx, app, { code: 'TET' })
    await ctx.db.update(
      transactions,
      { id: transactionId },
      { amount: 79_000, discountAmount: 20_000, promotionCode: 'TET' },
    )
    const pay = (amount: number) => transferred(ctx, transactionId, amount)
    await pay(50_000)
    expect((await months()).month).to.deep.include({ gross: { VND: 50_000n }, discounts: { VND: 0n } })
    ctx.clock.advance('1d')
    await pay(29_000)
    ctx.clock.advance('1d')
    await pay(79_000)
    const { month } = await months()
    expect(month).to.deep.include({ gross: { VND: 178_000n }, discounts: { VND: 20_000n }, net: { VND: 158_000n } })
    expect(month.by_method).to.deep.equal({ bank_transfer: { VND: 158_000n } })
  })

  it('a discount counts with a payment that was made before and moved to the purchase, if that completed it', async () => {
    const { ctx, app, plan, months } = await aShop()
    await aPromotion(ctx, app, { code: 'TET' })
    const bought = await aCheckout(ctx, app, { price_id: priceId(plan), external_ref: 'a' })
    for (const amount of [99_000, 50_000]) await transferred(ctx, bought.transaction_id!, amount)
    const twice = await ctx.db.one(payments, 'WHERE amount = 50000')
    ctx.clock.set('2026-04-20 10:00:00')
    const sale = await aCheckout(ctx, app, { price_id: priceId(plan), external_ref: 'a', promotion_code: 'TET' })
    await transferred(ctx, sale.transaction_id!, 29_200)
    const move = { payment_id: twice!.id, transaction_id: sale.transaction_id!, note: 'meant for this' }
    await movePayment(ctx, MAI, move)
    const { month, previous_month } = await months()
    expect(month).to.deep.include({ gross: { VND: 29_200n }, discounts: { VND: 0n } })
    expect(previous_month).to.deep.include({ gross: { VND: 168_800n }, discounts: { VND: 19_800n } })
  })

  it('a purchase that a promotion pays in full stays in its month when money comes for it all the same', async () => {
    const { ctx, app, plan, months } = await aShop()
    await aPromotion(ctx, app, { code: 'ALL', percent: 100 })
    const free = await aCheckout(ctx, app, { price_id: priceId(plan), external_ref: 'a', promotion_code: 'ALL' })
    ctx.clock.set('2026-04-20 10:00:00')
    await transferred(ctx, free.transaction_id!, 99_000)
    const { month, previous_month } = await months()
    expect(previous_month).to.deep.include({ gross: { VND: 99_000n }, discounts: { VND: 99_000n }, net: { VND: 0n } })
    expect(month).to.deep.include({ gross: { VND: 99_000n }, discounts: { VND: 0n }, net: { VND: 99_000n } })
  })

  it('a purchase that a promotion pays in full is gross and discount, and no money', async () => {
    const { ctx, app, plan, months } = await aShop()
    const { transaction_id } = await aCheckout(ctx, app, { price_id: priceId(plan) })
    const completedAt = (await ctx.db.one(transactions, 'WHERE id = ?', [transaction_id]))!.createdAt
    const free = {
      amount: 0,
      discountAmount: 99_000,
      promotionCode: 'ALL',
      status: 'completed',
      providerCode: 'promotion',
    }
    await ctx.db.update(transactions, { id: transaction_id! }, { ...free, completedAt } as never)
    const { month } = await months()
    expect(month).to.deep.include({ gross: { VND: 99_000n }, discounts: { VND: 99_000n }, net: { VND: 0n } })
    expect(month.by_method).to.deep.equal({ promotion: { VND: 0n } })
  })

  it('a refund counts in its own month, with the plan and the method of its payment', async () => {
    const { ctx, buy, months } = await aShop()
    const { transaction_id } = await buy('a')
    ctx.clock.set('2026-04-20 10:00:00')
    const refund = { action: 'refund', note: 'asked', reference: 'FT-BACK' } as const
    await resolveTransaction(ctx, MAI, { transactionId: transaction_id!, ...refund })
    const { month, previous_month } = await months()
    expect(previous_month).to.deep.include({ gross: { VND: 99_000n }, refunds: { VND: 0n }, net: { VND: 99_000n } })
    expect(month).to.deep.include({ gross: { VND: 0n }, refunds: { VND: 99_000n }, net: { VND: -99_000n } })
    expect(month.by_plan).to.deep.equal({ premium: { VND: -99_000n } })
    expect(month.by_method).to.deep.equal({ test: { VND: -99_000n } })
  })

  it('months are those of the app’s time zone, and of UTC over all apps', async () => {
    const { ctx, app, buy, months } = await aShop()
    await perform(ctx, MAI, updateApp, { time_zone: 'Asia/Ho_Chi_Minh' }, { app: app.app })
    ctx.clock.set('2026-03-31 17:30:00')
    await buy('a')
    expect((await months()).month).to.deep.include({ month: '2026-04', new: 1, gross: { VND: 99_000n } })
    const { month } = await gatherStats(ctx, { app: null })
    expect(month).to.deep.include({ month: '2026-03', new: 1, gross: { VND: 99_000n } })
  })

  it('a test clock moves the months of a sandbox app, of its money too', async () => {
    const { ctx, app, buy, months } = await aShop()
    await buy('a')
    ctx.clock.advance('1s')
    const load = (): Promise<App> => getApp(ctx.db, app.app.id)
    await advanceTestClock(ctx, SERVER, await load(), { advance_seconds: 30 * 86_400 + 86_400 * 20 })
    const moved: TestApp = { ...app, app: await load() }
    await paid(ctx, moved, { external_ref: 'b', price_id: (await aPlanOf(ctx, moved)).price })
    const { month, previous_month } = await months()
    expect(month).to.deep.include({ month: '2026-04', new: 1, lapsed: 1, gross: { VND: 99_000n } })
    expect(previous_month).to.deep.include({ new: 1, gross: { VND: 99_000n } })
  })

  it('each payment and each refund stays in the month in which the test clock made it', async () => {
    const { ctx, app, plan, months } = await aShop()
    const { transaction_id } = await aCheckout(ctx, app, { external_ref: 'a', price_id: priceId(plan) })
    const transfer = async (amount: number): Promise<void> => {
      const report = {
        provider: 'bank_transfer',
        eventId: null,
        transactionId: transaction_id!,
        currency: 'VND',
      } as const
      await reportPayment(ctx, { ...report, reference: `FT-IN-${amount}`, amount, paidAt: ctx.clock.now() })
      ctx.clock.advance('1s')
    }
    const refund = async (amount: number): Promise<void> => {
      const decision = { action: 'refund', note: 'asked', reference: `FT-${amount}`, amount } as const
      await resolveTransaction(ctx, MAI, { transactionId: transaction_id!, ...decision })
      ctx.clock.advance('1s')
    }
    await transfer(40_000)
    await refund(10_000)
    await advanceTestClock(ctx, SERVER, await getApp(ctx.db, app.app.id), { now: '2026-04-20 10:00:00' })
    await transfer(69_000)
    await refund(20_000)
    const { month, previous_month } = await months()
    expect(previous_month).to.deep.include({ month: '2026-03', gross: { VND: 40_000n }, refunds: { VND: 10_000n } })
    expect(month).to.deep.include({ month: '2026-04', gross: { VND: 69_000n }, refunds: { VND: 20_000n } })
  })

  it('a discount stays with the payment that completed the purchase, however the test clock moves', async () => {
    const { ctx, app, plan, months } = await aShop()
    const { transaction_id } = await aCheckout(ctx, app, { external_ref: 'a', price_id: priceId(plan) })
    await aPromotion(ctx, app, { code: 'TET' })
    const sold = { amount: 79_000, discountAmount: 20_000, promotionCode: 'TET' }
    await ctx.db.update(transactions, { id: transaction_id! }, sold)
    const transfer = async (reference: string): Promise<void> => {
      const report = {
        provider: 'bank_transfer',
        eventId: null,
        transactionId: transaction_id!,
        currency: 'VND',
      } as const
      await reportPayment(ctx, { ...report, reference, amount: 79_000, paidAt: ctx.clock.now() })
      ctx.clock.advance('1s')
    }
    await transfer('FT-PAYS')
    await advanceTestClock(ctx, SERVER, await getApp(ctx.db, app.app.id), { now: '2026-04-20 10:00:00' })
    await transfer('FT-AGAIN')
    const { month, previous_month } = await months()
    expect(previous_month).to.deep.include({ gross: { VND: 99_000n }, discounts: { VND: 20_000n } })
    expect(month).to.deep.include({ gross: { VND: 79_000n }, discounts: { VND: 0n } })
  })

  const aPlanOf = async (ctx: TestContext, app: TestApp) => ({ price: priceId(await aPlan(ctx, app)) })

  it('a trial is a start, and its first payment a renewal; lifetime purchases are in no renewal rate', async () => {
    const { ctx, app, months } = await aShop()
    const plan = await aPlan(ctx, app, { prices: [{ ...MONTHLY, trial: FREE_TRIAL }, LIFETIME] })
    await paid(ctx, app, { external_ref: 'trial', price_id: priceId(plan) })
    await paid(ctx, app, { external_ref: 'life', price_id: priceId(plan, 1) })
    ctx.clock.advance('6d')
    await paid(ctx, app, { external_ref: 'trial', price_id: priceId(plan) })
    const { month, renewal_rate } = await months()
    expect(month).to.include({ new: 2, renewed: 1, returned: 0 })
    expect(renewal_rate).to.deep.equal([{ start_month: '2026-03', size: 1, rates: [1] }])
  })

  it('expect in 30 days what those pay for a renewal who get a reminder in them', async () => {
    const { ctx, app, plan, months } = await aShop()
    const customer_id = `cus_${(await aCustomer(ctx, app)).id}`
    await paid(ctx, app, { external_ref: 'reminded', price_id: priceId(plan), customer_id })
    await paid(ctx, app, { external_ref: 'too', price_id: priceId(plan, 1), customer_id })
    await paid(ctx, app, { external_ref: 'without a customer', price_id: priceId(plan) })
    expect((await months()).expected_30_days).to.deep.equal({ VND: 149_000n })
    await aPromotion(ctx, app, { code: 'TET', every_period: true })
    const discounted = { external_ref: 'discounted', price_id: priceId(plan), promotion_code: 'TET' }
    await paid(ctx, app, { ...discounted, customer_id })
    expect((await months()).expected_30_days).to.deep.equal({ VND: 228_200n })
    ctx.clock.advance('60d')
    expect((await months()).expected_30_days).to.deep.equal({})
  })

  it('add up over a year to the money and the active subscriptions of the demo', async () => {
    const ctx = realTimeContext()
    const app = await getApp(ctx.db, (await makeDemo(ctx, MAI)).app_id)
    const present = await gatherStats(ctx, { app })
    const months: MonthFigures[] = []
    for (let back = 0; back <= 12; back += 1)
      months.push((await gatherStats(ctx, { app, month: monthAfter(present.month.month, -back) })).month)
    const total = (of: (month: MonthFigures) => bigint | number | undefined): number =>
      months.reduce((sum, month) => sum + Number(of(month) ?? 0), 0)
    for (const { currency, received, refunded } of present.revenue) {
      expect(total(({ gross }) => gross[currency])).to.equal(Number(received))
      expect(total(({ refunds }) => refunds[currency])).to.equal(Number(refunded))
    }
    const { active } = present.subscriptions
    expect(total((month) => month.new + month.returned - month.lapsed)).to.equal(active)
    expect(total(({ lapsed }) => lapsed)).to.be.above(0)
    expect(total(({ returned }) => returned)).to.be.above(0)
  })
})
