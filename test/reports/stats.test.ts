import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { advanceTestClock } from '#test-clock/advance-test-clock.ts'
import { getApp } from '#apps/store.ts'
import { gatherStats } from '#reports/stats.ts'
import { resolveTransaction } from '#decisions/resolve-transaction.ts'
import { allocations } from '#payments/store.ts'
import { unearnedOf } from '#reports/unearned.ts'
import { DAY_MS, addMs, asAppTime } from '#shared/time.ts'
import { testContext, type TestContext } from '../support/context.ts'
import {
  anApp,
  aPlan,
  FREE_TRIAL,
  LIFETIME,
  MONTHLY,
  paid,
  partlyPaid,
  priceId,
  YEARLY,
  SERVER,
} from '../support/factories.ts'
import { operator } from '#commands/caller.ts'

/** Five end users: a month, a trial, a lifetime, a lapsed month, and a renewed month. Now is 2026-04-12 10:00:00. */
async function aBusiness(ctx: TestContext) {
  const app = await anApp(ctx)
  const plan = await aPlan(ctx, app, { prices: [MONTHLY, LIFETIME, YEARLY] })
  const other = await aPlan(ctx, app, { prices: [{ ...MONTHLY, amount: 1000, currency: 'USD', trial: FREE_TRIAL }] })
  await paid(ctx, app, { external_ref: 'lapsed', price_id: priceId(plan) })
  await paid(ctx, app, { external_ref: 'renewed', price_id: priceId(plan) })
  await paid(ctx, app, { external_ref: 'life', price_id: priceId(plan, 1) })
  ctx.clock.advance('30d')
  await paid(ctx, app, { external_ref: 'renewed', price_id: priceId(plan) })
  ctx.clock.advance('10d')
  await paid(ctx, app, { external_ref: 'month', price_id: priceId(plan) })
  await paid(ctx, app, { external_ref: 'trial', price_id: priceId(other) })
  ctx.clock.advance('2d')
  return { app, plan, other }
}

describe('stats', () => {
  it('counts subscriptions by state, in the app’s own time', async () => {
    const ctx = testContext()
    await aBusiness(ctx)
    const { mode, subscriptions } = await gatherStats(ctx, { app: null })
    expect(mode).to.equal('test')
    expect(subscriptions).to.deep.equal({
      active: 4,
      in_trial: 1,
      lifetime: 1,
      expiring_in_7_days: 1,
      expiring_in_30_days: 3,
      expired: 1,
      in_grace: 0,
      lapsed: 1,
    })
  })

  it('the counts follow a test clock', async () => {
    const ctx = testContext()
    const { app } = await aBusiness(ctx)
    await advanceTestClock(ctx, SERVER, await getApp(ctx.db, app.app.id), { advance_seconds: 8 * 86_400 })
    const { subscriptions } = await gatherStats(ctx, { app: await getApp(ctx.db, app.app.id) })
    expect(subscriptions).to.include({ active: 3, in_trial: 0, expired: 2, in_grace: 1, lapsed: 1 })
  })

  it('counts cash by currency and month, refunds in the month of the refund, and the sum of both', async () => {
    const ctx = testContext()
    await aBusiness(ctx)
    const { transactionId } = (await ctx.db.one(allocations, 'WHERE amount = 99000 ORDER BY id LIMIT 1'))!
    await resolveTransaction(ctx, operator('mai'), {
      transactionId,
      action: 'refund',
      note: 'asked',
      reference: 'FT-BACK',
    })
    const { cash, revenue } = await gatherStats(ctx, { app: null })
    expect(cash).to.deep.equal([
      { currency: 'VND', month: '2026-03', payments: 4, received: 3_197_000n, refunded: 0n },
      { currency: 'VND', month: '2026-04', payments: 1, received: 99_000n, refunded: 99_000n },
    ])
    expect(revenue).to.deep.equal([
      { currency: 'VND', payments: 5, received: 3_296_000n, refunded: 99_000n, net: 3_197_000n },
    ])
  })

  it('counts cash of a sandbox app by its own clock, refunds too', async () => {
    const ctx = testContext()
    const app = await anApp(ctx)
    const plan = await aPlan(ctx, app)
    await paid(ctx, app, { price_id: priceId(plan) })
    ctx.clock.advance('1s')
    await advanceTestClock(ctx, SERVER, app.app, { advance_seconds: 40 * 86_400 })
    ctx.clock.advance('1s')
    const current = { ...app, app: await getApp(ctx.db, app.app.id) }
    await paid(ctx, current, { price_id: priceId(plan) })
    const { transactionId } = (await ctx.db.one(allocations, 'ORDER BY id DESC LIMIT 1'))!
    const refund = { transactionId, action: 'refund', note: 'asked', reference: 'FT-BACK' } as const
    await resolveTransaction(ctx, operator('mai'), refund)
    const { cash } = await gatherStats(ctx, { app: current.app })
    expect(cash).to.deep.equal([
      { currency: 'VND', month: '2026-03', payments: 1, received: 99_000n, refunded: 0n },
      { currency: 'VND', month: '2026-04', payments: 1, received: 99_000n, refunded: 99_000n },
    ])
  })

  it('unearned revenue is what was paid for and is still to be delivered, to the smallest unit', async () => {
    const ctx = testContext()
    await aBusiness(ctx)
    // renewed: 19 of the 30 days from 2026-04-01 10:00; month: 28 of 30 days; lifetime, trial and lapsed: nothing.
    const days = (count: number) => Math.floor((99_000 * count) / 30)
    expect((await gatherStats(ctx, { app: null })).unearned).to.deep.equal([
      { currency: 'VND', amount: BigInt(days(19) + days(28)) },
    ])
  })

  it('the rest of a period that was replaced by another plan is not unearned', async () => {
    const ctx = testContext()
    const app = await anApp(ctx)
    const [first, second] = [await aPlan(ctx, app), await aPlan(ctx, app, { prices: [YEARLY] })]
    await paid(ctx, app, { price_id: priceId(first) })
    await paid(ctx, app, { price_id: priceId(second) })
    expect((await gatherStats(ctx, { app: app.app })).unearned).to.deep.equal([{ currency: 'VND', amount: 990_000n }])
  })

  it('a period is fully unearned before it begins, partly while it runs, and not at all after it', () => {
    const instants = fc
      .integer({ min: 0, max: 400 })
      .map((days) => addMs(asAppTime(new Date('2026-01-01T00:00:00Z')), days * DAY_MS))
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
        instants,
        instants,
        instants,
        (amount, a, b, now) => {
          const [start, end] = a < b ? [a, b] : [b, a]
          const left = unearnedOf({ amount, start, end, now })
          expect(left).to.be.within(0, amount)
          if (now <= start && start < end) expect(left).to.equal(amount)
          if (now >= end) expect(left).to.equal(0)
        },
      ),
    )
  })

  it('the renewal rate is the share of ended periods that were renewed', async () => {
    const ctx = testContext()
    await aBusiness(ctx)
    expect((await gatherStats(ctx, { app: null })).renewals).to.deep.equal({
      days: 30,
      ended: 2,
      renewed: 1,
      rate: 0.5,
    })
    expect((await gatherStats(ctx, { app: null, isTest: false })).renewals.rate).to.equal(null)
  })

  it('live apps are counted without sandbox ones; money that was not applied is counted separately', async () => {
    const ctx = testContext()
    const { app, plan } = await aBusiness(ctx)
    await partlyPaid(ctx, app, { external_ref: 'short', price_id: priceId(plan) })
    expect((await gatherStats(ctx, { app: null })).unapplied).to.deep.equal([{ currency: 'VND', amount: 90_000n }])
    const live = await anApp(ctx, { sandbox: false })
    const stats = await gatherStats(ctx, { app: null })
    expect(stats).to.include({ mode: 'live' })
    expect(stats.app_ids).to.deep.equal([live.app.id])
    expect(stats.subscriptions.active).to.equal(0)
    expect(stats.unapplied).to.deep.equal([])
  })

  it('deliveries are counted by outcome', async () => {
    const ctx = testContext()
    await aBusiness(ctx)
    const { deliveries } = await gatherStats(ctx, { app: null })
    expect(deliveries).to.deep.equal({ pending: 0, delivered: 0, failed: 0, not_configured: 7 })
  })
})
