import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { chooseMethod } from '#checkout/choose-method.ts'
import { viewCheckout } from '#checkout/view-checkout.ts'
import { operator } from '#commands/caller.ts'
import { perform } from '#commands/perform.ts'
import { previewResolution, resolveTransaction } from '#decisions/resolve-transaction.ts'
import { countTaken, getPromotion } from '#promotions/store.ts'
import { updatePromotion } from '#promotions/update-promotion.ts'
import { asAppTime } from '#shared/time.ts'
import { transactions } from '#transactions/store.ts'
import { stopWithCleanLedger } from '../support/clean-ledger.ts'
import { expectError, expectFieldError } from '../support/expect-error.ts'
import {
  aPlan,
  aPromotion,
  FREE_TRIAL,
  LIFETIME,
  MONTHLY,
  PAID_TRIAL,
  priceId,
  reportPayment,
  tokenOf,
  transferred,
} from '../support/factories.ts'
import { startIdentityClients } from '../support/identity-clients.ts'
import { newEventTypes, startScenario, type PayableCheckout, type Scenario } from '../support/scenario.ts'

const URLS = { success_url: 'https://shop.example/ok', cancel_url: 'https://shop.example/no' }

describe('a checkout with a promotion', () => {
  let scenario: Scenario
  let price: string
  beforeEach(async () => {
    scenario = await startScenario()
    price = (await scenario.plan('pro', MONTHLY)).prices[0]!
  })
  afterEach(() => stopWithCleanLedger(scenario.service))

  const promotion = (changes: object = {}) => aPromotion(scenario.service.ctx, scenario.app, changes)
  const open = (body: object = {}) => scenario.checkout({ price_id: price, promotion_code: 'TET', ...body })
  const ask = (body: object = {}) =>
    scenario.seller.post('/api/v1/checkout-sessions', {
      ...URLS,
      external_ref: 'user-1',
      mode: 'subscription',
      price_id: price,
      promotion_code: 'TET',
      ...body,
    })
  const usesOf = async ({ id }: { id: number }) =>
    (await getPromotion(scenario.service.ctx.db, scenario.app.app.id, id)).uses
  const expectUnusable = (answer: Awaited<ReturnType<typeof ask>>, words: RegExp) => {
    expectError(answer, 400, 'promotion_not_valid')
    expect(answer.body.error.field).to.equal('promotion_code')
    expect(answer.body.error.message)
      .to.match(/^promotion_code: /)
      .and.match(words)
  }

  it('costs the price less the discount, which the answer and the transaction show', async () => {
    await promotion()
    const checkout = await open({ promotion_code: 'tet' })
    expect(checkout).to.deep.include({ activated: false, discount: { code: 'TET', amount: 19_800 } })
    const shown = await scenario.transaction(checkout.transaction_id)
    expect(shown).to.deep.include({ amount: 79_200, discount: { code: 'TET', amount: 19_800 }, status: 'pending' })
    const plain = await scenario.checkout({ price_id: price, external_ref: 'user-2' })
    expect(plain).to.include({ discount: null })
    expect(await scenario.transaction(plain.transaction_id)).to.include({ amount: 99_000, discount: null })
  })

  it('takes off a percentage rounded down to the smallest unit, or an amount up to the price', async () => {
    const odd = (await scenario.plan('odd', { ...MONTHLY, amount: 999, currency: 'USD' })).prices[0]!
    await promotion({ code: 'THIRD', percent: 33 })
    await promotion({ code: 'TEN', amount: 1000, currency: 'USD' })
    const third = await open({ price_id: odd, promotion_code: 'THIRD' })
    expect(third.discount).to.deep.equal({ code: 'THIRD', amount: 329 })
    const ten = await open({ price_id: odd, promotion_code: 'TEN', external_ref: 'user-2' })
    expect(ten).to.deep.include({ discount: { code: 'TEN', amount: 999 }, activated: true })
  })

  it('is paid at the discounted amount, and counts one use when it is', async () => {
    const made = await promotion()
    const checkout = await open()
    expect(await usesOf(made)).to.equal(0)
    await scenario.pay(checkout)
    expect(await usesOf(made)).to.equal(1)
    const paid = await scenario.transaction(checkout.transaction_id)
    expect(paid).to.include({ status: 'completed', amount: 79_200, amount_received: 79_200, flagged: false })
    expect((await scenario.subscription()).current_period_end).to.equal('2026-04-01 10:00:00')
  })

  it('subscription.renewed carries what was paid', async () => {
    await promotion()
    await scenario.pay(await scenario.checkout({ price_id: price }))
    await scenario.newEvents()
    await scenario.pay(await open())
    const [renewed] = await scenario.newEvents()
    expect(renewed?.type).to.equal('subscription.renewed')
    expect(renewed?.data).to.include({ amount: 79_200, currency: 'VND' })
  })

  it('discounts a paid trial as its own amount', async () => {
    const trial = (await scenario.plan('trial', { ...MONTHLY, trial: PAID_TRIAL })).prices[0]!
    await promotion()
    const checkout = await open({ price_id: trial })
    expect(checkout.discount).to.deep.equal({ code: 'TET', amount: 2_000 })
    expect(checkout.trial).to.include({ amount: 10_000 })
    expect(await scenario.transaction(checkout.transaction_id)).to.include({ amount: 8_000 })
    await scenario.pay(checkout)
    expect(await scenario.subscription()).to.include({ in_trial: true })
  })

  it('refuses a code that cannot be used, and says why: promotion_not_valid', async () => {
    const { service, app } = scenario
    const { ctx } = service
    await aPlan(ctx, app, { code: 'other' })
    await promotion({ code: 'OTHER', plan_codes: ['other'] })
    await promotion({ code: 'DOLLARS', amount: 100, currency: 'USD' })
    await promotion({ code: 'PAST', valid_until: '2026-03-01 10:00:00' })
    const { id: promotionId } = await promotion({ code: 'GONE' })
    await perform(ctx, operator('tester'), updatePromotion, { status: 'archived' }, { app: app.app, promotionId })
    await promotion({ code: 'LAST', max_uses: 1 })
    await scenario.pay(await open({ promotion_code: 'LAST', external_ref: 'user-2' }))
    const cases: readonly [code: string, words: RegExp][] = [
      ['NOPE', /no promotion with this code/],
      ['<script>', /no promotion with this code/],
      ['', /no promotion with this code/],
      [' ', /no promotion with this code/],
      ['N'.repeat(41), /no promotion with this code/],
      ['N'.repeat(50_000), /no promotion with this code/],
      ['TET\ud800\u0000', /no promotion with this code/],
      ['OTHER', /not for the plan "pro"/],
      ['DOLLARS', /not for prices in VND/],
      ['PAST', /is over/],
      ['GONE', /is archived/],
      ['LAST', /is used up/],
    ]
    for (const [promotion_code, words] of cases) expectUnusable(await ask({ promotion_code }), words)
    expectUnusable(await ask({ promotion_code: 'LAST', external_ref: 'user-2' }), /used this promotion already/)
    expectFieldError(await ask({ promotion_code: 7 }), 'promotion_code')
    const payment = { mode: 'payment', price_id: undefined, plan_ref: 'book', amount: 5_000, currency: 'VND' }
    expectFieldError(await ask(payment), 'promotion_code')
  })

  it("tells an end user's client the same whatever the reason is", async () => {
    const clients = await startIdentityClients()
    const { ctx } = scenario.service
    const client = await clients.app(ctx)
    const plan = await aPlan(ctx, client)
    await aPromotion(ctx, client, { code: 'PAST', valid_until: '2026-03-01 10:00:00' })
    await aPromotion(ctx, client, { code: 'TET' })
    const headers = await clients.headers(ctx, client, 'user-1')
    const asClient = (promotion_code: string) => {
      const body = { ...URLS, external_ref: 'user-1', mode: 'subscription', price_id: priceId(plan), promotion_code }
      return scenario.service.call('POST', '/api/v1/checkout-sessions', { headers, raw: JSON.stringify(body) })
    }
    const [past, unknown] = [await asClient('PAST'), await asClient('NOPE')]
    expectError(past, 400, 'promotion_not_valid')
    expect(past.body.error.message).to.equal(unknown.body.error.message)
    expect((await asClient('TET')).body.data.discount).to.deep.equal({ code: 'TET', amount: 19_800 })
    await clients.stop()
  })

  it('is refused with a method that the app has not enabled, whatever is left to pay', async () => {
    const trial = (await scenario.plan('trial', { ...MONTHLY, trial: FREE_TRIAL })).prices[0]!
    await promotion({ code: 'TENTH', percent: 10 })
    await promotion({ code: 'ALL', percent: 100 })
    for (const price_id of [price, trial])
      for (const promotion_code of ['TENTH', 'ALL']) {
        const answer = await ask({ price_id, promotion_code, payment_method: 'card' })
        expectError(answer, 400, 'payment_method_unavailable')
        expect(answer.body.error.field).to.equal('payment_method')
      }
  })

  describe('that leaves nothing to pay', () => {
    it('activates at once: a completed transaction of amount 0', async () => {
      const made = await promotion({ percent: 100 })
      const checkout = await open()
      expect(checkout).to.deep.include({
        activated: true,
        checkout_url: URLS.success_url,
        discount: { code: 'TET', amount: 99_000 },
      })
      const transaction = await scenario.transaction(checkout.transaction_id)
      expect(transaction).to.include({ amount: 0, amount_received: 0, status: 'completed', flagged: false })
      expect(transaction).to.include({ provider_code: 'promotion', completed_at: '2026-03-01 10:00:00' })
      expect(await scenario.subscription()).to.include({ status: 'active', current_period_end: '2026-04-01 10:00:00' })
      expect(await newEventTypes(scenario)).to.deep.equal(['subscription.updated'])
      expect(await usesOf(made)).to.equal(1)
    })

    it('stays completed when money that came for it all the same is refunded', async () => {
      await promotion({ percent: 100 })
      const { transaction_id: id } = await open()
      await transferred(scenario.service.ctx, id, 99_000)
      expect(await scenario.transaction(id)).to.include({ flag_reason: 'duplicate_payment' })
      const refund = { action: 'refund', note: 'paid for nothing', reference: 'FT-BACK' } as const
      const asked = { transactionId: id, ...refund }
      const { effects } = await previewResolution(scenario.service.ctx, operator('tester'), asked)
      expect(effects).not.to.include('the transaction ends as refunded')
      await resolveTransaction(scenario.service.ctx, operator('tester'), asked)
      expect(await scenario.transaction(id)).to.include({
        status: 'completed',
        amount_refunded: 99_000,
        flagged: false,
      })
    })

    it('extends a valid subscription, and subscription.renewed carries 0', async () => {
      await promotion({ amount: 500_000, currency: 'VND' })
      await scenario.pay(await scenario.checkout({ price_id: price }))
      await scenario.newEvents()
      await open({ payment_method: 'test' })
      const [renewed, updated] = await scenario.newEvents()
      expect(renewed?.data).to.include({ amount: 0, provider_code: 'promotion' })
      expect(updated?.data).to.include({ current_period_end: '2026-05-01 10:00:00' })
    })

    it('grants a paid trial, once', async () => {
      const trial = (await scenario.plan('trial', { ...MONTHLY, trial: PAID_TRIAL })).prices[0]!
      await promotion({ amount: 10_000, currency: 'VND', once_per_user: false })
      expect(await open({ price_id: trial })).to.include({ activated: true })
      expect(await scenario.subscription()).to.include({ in_trial: true })
      const second = await open({ price_id: trial })
      expect(second).to.deep.include({ activated: false, trial: null, discount: { code: 'TET', amount: 10_000 } })
    })
  })

  describe('for a free trial', () => {
    let trial: string
    beforeEach(async () => {
      trial = (await scenario.plan('trial', { ...MONTHLY, trial: FREE_TRIAL })).prices[0]!
    })

    it('is not used: there is nothing to take anything off', async () => {
      const made = await promotion()
      expect(await open({ price_id: trial })).to.include({ activated: true, discount: null, transaction_id: null })
      expect(await usesOf(made)).to.equal(0)
      expectUnusable(await ask({ price_id: trial, promotion_code: 'NOPE' }), /no promotion/)
    })

    it('counts a use where it discounts every period: the renewals after the trial', async () => {
      const made = await promotion({ every_period: true })
      const checkout = await open({ price_id: trial })
      expect(checkout).to.deep.include({ activated: true, discount: { code: 'TET', amount: 0 }, transaction_id: null })
      expect(await usesOf(made)).to.equal(1)
    })
  })

  it('reserves the use while it is open: nobody else gets the last one until it expires', async () => {
    const made = await promotion({ max_uses: 1 })
    await open({ expires_in: 1800 })
    expectUnusable(await ask({ external_ref: 'user-2' }), /used up/)
    scenario.at('2026-03-01 10:30:00')
    await scenario.pay(await open({ external_ref: 'user-2' }))
    expect(await usesOf(made)).to.equal(1)
    expectUnusable(await ask(), /used up/)
  })

  it('of a limit that was lowered or lifted counts what is taken by then', async () => {
    const { app, service } = scenario
    const { id: promotionId } = await promotion({ max_uses: 2 })
    const limit = (max_uses: number | null) =>
      perform(service.ctx, operator('tester'), updatePromotion, { max_uses }, { app: app.app, promotionId })
    await open()
    await limit(1)
    expectUnusable(await ask({ external_ref: 'user-2' }), /used up/)
    await limit(null)
    await open({ external_ref: 'user-2' })
    await limit(2)
    expectUnusable(await ask({ external_ref: 'user-3' }), /used up/)
  })

  it('takes over the reservation of the same end user: the older checkout answers 410', async () => {
    const made = await promotion({ max_uses: 1 })
    const older = await open()
    const newer = await open()
    const page = await scenario.service.call('GET', older.checkout_url)
    expect(page.status).to.equal(410)
    const resolve = await scenario.service.call('POST', `${older.checkout_url}/resolve`, {
      raw: JSON.stringify({ payment_method: 'test' }),
      headers: { 'Content-Type': 'application/json' },
    })
    expectError(resolve, 410, 'checkout_expired')
    expect(resolve.body.error.message).to.contain('promotion')
    await scenario.pay(newer)
    expect(await usesOf(made)).to.equal(1)
  })

  it('whose payment was under way when its reservation passed on still gets its discount', async () => {
    const made = await promotion({ max_uses: 1 })
    const older = await open()
    const { ctx } = scenario.service
    const view = await viewCheckout(ctx, tokenOf(older))
    const newer = await open()
    await chooseMethod(ctx, view.session.token, 'test', { seen: view })
    expect(await scenario.transaction(older.transaction_id)).to.include({ status: 'completed', amount: 79_200 })
    const scope = { app: scenario.app.app, promotionId: made.id }
    await perform(ctx, operator('tester'), updatePromotion, { max_uses: null }, scope)
    expectUnusable(await ask(), /used this promotion already/)
    await scenario.pay(newer)
    expect(await usesOf(made)).to.equal(2)
  })

  it('counts a use that is paid while another end user asks for the last one', async () => {
    const { id: promotionId } = await promotion({ max_uses: 1 })
    const checkout = await open()
    const { ctx } = scenario.service
    const { endUserId } = (await ctx.db.one(transactions, 'WHERE id = ?', [checkout.transaction_id]))!
    // The payment commits right after the first read.
    const db = new Proxy(ctx.db, {
      get:
        (target, name) =>
        async (...words: unknown[]) => {
          const found: unknown = await (Reflect.get(target, name) as (...of: unknown[]) => unknown).apply(target, words)
          await scenario.pay(checkout)
          return found
        },
    })
    expect(await countTaken(db, promotionId, endUserId + 1, asAppTime(ctx.clock.now()))).to.equal(1)
  })

  it('whose money comes after it expired still gets its discount, though another took the last use', async () => {
    const made = await promotion({ max_uses: 1 })
    const late = await open({ expires_in: 1800 })
    scenario.at('2026-03-01 11:00:00')
    await scenario.pay(await open({ external_ref: 'user-2' }))
    await scenario.reportTransfer(late)
    expect(await scenario.transaction(late.transaction_id)).to.include({ status: 'completed', flagged: false })
    expect(await usesOf(made)).to.equal(2)
  })

  it('may be used again and again by one end user where the promotion says so', async () => {
    const made = await promotion({ once_per_user: false })
    for (let uses = 1; uses <= 3; uses += 1) {
      await scenario.pay(await open())
      expect(await usesOf(made)).to.equal(uses)
    }
  })

  it('keeps its discount when the promotion is archived or over meanwhile', async () => {
    const { id: promotionId } = await promotion({ valid_until: '2026-03-01 10:10:00' })
    const checkout = await open()
    const scope = { app: scenario.app.app, promotionId }
    await perform(scenario.service.ctx, operator('tester'), updatePromotion, { status: 'archived' }, scope)
    scenario.at('2026-03-01 10:20:00')
    await scenario.pay(checkout)
    expect(await scenario.transaction(checkout.transaction_id)).to.include({ status: 'completed', amount: 79_200 })
  })

  it('sells a lifetime price, too', async () => {
    const lifetime = (await scenario.plan('life', LIFETIME)).prices[0]!
    await promotion({ amount: 900_000, currency: 'VND' })
    await scenario.pay(await open({ price_id: lifetime }))
    expect(await scenario.subscription()).to.include({ current_period_end: null })
  })

  describe('raced for', () => {
    const raced = (asks: readonly object[]) => Promise.all(asks.map((body) => ask(body)))
    const statuses = (answers: Awaited<ReturnType<typeof raced>>) => answers.map(({ status }) => status).sort()

    it('by twelve end users who ask for the last three uses at once: three win, the others read 400', async () => {
      await promotion({ max_uses: 3 })
      const answers = await raced(Array.from({ length: 12 }, (_, n) => ({ external_ref: `user-${n}` })))
      expect(statuses(answers)).to.deep.equal([201, 201, 201, ...Array.from({ length: 9 }, () => 400)])
      for (const answer of answers.filter(({ status }) => status === 400)) expectUnusable(answer, /used up/)
    })

    it('by two end users for whom it leaves nothing to pay: one is activated', async () => {
      const made = await promotion({ max_uses: 1, percent: 100 })
      const answers = await raced([{ external_ref: 'user-1' }, { external_ref: 'user-2' }])
      expect(statuses(answers)).to.deep.equal([201, 400])
      expect(await usesOf(made)).to.equal(1)
    })

    it('by one end user five times at once: one checkout stays open, and one payment counts', async () => {
      const made = await promotion({ max_uses: 1 })
      const answers = await raced([{}, {}, {}, {}, {}])
      expect(statuses(answers)).to.deep.equal([201, 201, 201, 201, 201])
      const checkouts = answers.map(({ body }) => body.data as PayableCheckout)
      const pages = await Promise.all(checkouts.map(({ checkout_url }) => scenario.service.call('GET', checkout_url)))
      expect(pages.map(({ status }) => status).sort()).to.deep.equal([200, 410, 410, 410, 410])
      await scenario.pay(checkouts[pages.findIndex(({ status }) => status === 200)]!)
      expect(await usesOf(made)).to.equal(1)
    })

    it('by ten reports of the same payment: one use counts', async () => {
      const made = await promotion()
      const { transaction_id: transactionId } = await open()
      const { ctx } = scenario.service
      const paid = { provider: 'stripe', reference: 'cs_1', transactionId, amount: 79_200, currency: 'VND' }
      const money = { ...paid, paidAt: ctx.clock.now() }
      await Promise.all(Array.from({ length: 10 }, (_, n) => reportPayment(ctx, { ...money, eventId: `evt_${n}` })))
      expect(await usesOf(made)).to.equal(1)
    })
  })
})
