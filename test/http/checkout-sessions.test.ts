import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import type { PlanWithPrices } from '#plans/store.ts'
import { disableMethod, enableMethod } from '../support/operators.ts'
import type { Transaction } from '../../client/src/types.ts'
import { startService, type SellerClient, type TestService } from '../support/api.ts'
import { expectFieldError, expectError } from '../support/expect-error.ts'
import {
  aCustomer,
  anApp,
  aPlan,
  FREE_TRIAL,
  LIFETIME,
  MONTHLY,
  paid,
  PAID_TRIAL,
  priceId,
  type TestApp,
} from '../support/factories.ts'

const PATH = '/api/v1/checkout-sessions'
const DOLLARS = { amount: 999, currency: 'USD' }
const URLS = { success_url: 'https://shop.example/ok?a=1&b=2#done', cancel_url: 'http://127.0.0.1:3000/no' }

describe('POST /api/v1/checkout-sessions', () => {
  let service: TestService
  let app: TestApp
  let seller: SellerClient
  let plan: PlanWithPrices

  beforeEach(async () => {
    service = await startService()
    app = await anApp(service.ctx)
    seller = service.seller(app)
    plan = await aPlan(service.ctx, app, {
      prices: [MONTHLY, { ...MONTHLY, trial: FREE_TRIAL }, { ...MONTHLY, trial: PAID_TRIAL }, LIFETIME],
    })
  })

  afterEach(() => service.stop())

  it('answers 201 with the link to the hosted page and the pending transaction', async () => {
    const answer = await seller.post(PATH, subscription())
    expect(answer.status).to.equal(201)
    const { id, checkout_url, transaction_id } = answer.body.data
    expect(id).to.match(/^cs_[1-9]\d*$/)
    expect(checkout_url.slice(0, -64)).to.equal(`${service.url}/checkout/`)
    expect(checkout_url.slice(-64)).to.match(/^[0-9a-f]{64}$/)
    expect(transaction_id).to.be.a('number')
    expect(answer.body).to.deep.equal({
      success: true,
      data: {
        id,
        checkout_url,
        activated: false,
        discount: null,
        trial: null,
        transaction_id,
        expires_at: '2026-03-01 11:00:00',
      },
    })
    expect((await service.call('GET', checkout_url)).status).to.equal(200)
    expect(await pending(transaction_id)).to.include({ mode: 'subscription', plan_ref: plan.code, amount: 99000 })
  })

  it('in mode payment takes amount and currency with any plan_ref that has the form of a plan code', async () => {
    const answer = await seller.post(PATH, { ...payment(), plan_ref: 'e-book_1', currency: 'usd' })
    expect(answer.status).to.equal(201)
    expect(answer.body.data).to.include({ activated: false, trial: null })
    expect(await pending(answer.body.data.transaction_id)).to.include({
      mode: 'payment',
      plan_ref: 'e-book_1',
      price_id: null,
      paygate_customer_id: null,
      amount: 5000,
      currency: 'USD',
    })
  })

  it('activates a free trial at once: checkout_url is success_url, and there is no transaction', async () => {
    const answer = await seller.post(PATH, subscription(1))
    expect(answer.status).to.equal(201)
    expect(answer.body.data).to.deep.include({
      checkout_url: URLS.success_url,
      activated: true,
      trial: { amount: 0, interval_unit: 'day', interval_count: 7, ends_at: '2026-03-08 10:00:00' },
      transaction_id: null,
    })
    expect((await seller.get('/api/v1/transactions')).body.data).to.deep.equal([])
  })

  it('shows a paid trial as if it were paid now, and charges its amount', async () => {
    const { data } = (await seller.post(PATH, subscription(2))).body
    expect(data).to.deep.include({
      activated: false,
      trial: { amount: 10000, interval_unit: 'week', interval_count: 1, ends_at: '2026-03-08 10:00:00' },
    })
    expect(await pending(data.transaction_id)).to.include({ amount: 10000 })
  })

  it('with skip_trial true charges the regular amount; false changes nothing', async () => {
    const skipped = (await seller.post(PATH, { ...subscription(1), skip_trial: true })).body.data
    expect(skipped).to.include({ activated: false, trial: null })
    expect(await pending(skipped.transaction_id)).to.include({ amount: 99000 })
    expect((await seller.post(PATH, { ...subscription(1), skip_trial: false })).body.data.activated).to.equal(true)
  })

  it('accepts a customer, a payment method, and a lifetime of 30 minutes to a day', async () => {
    const customer_id = `cus_${(await aCustomer(service.ctx, app)).id}`
    const body = { ...subscription(), customer_id, payment_method: 'test' }
    const ends: Record<number, string> = { 1800: '2026-03-01 10:30:00', 86400: '2026-03-02 10:00:00' }
    for (const [seconds, end] of Object.entries(ends)) {
      const answer = await seller.post(PATH, { ...body, expires_in: Number(seconds) })
      expect(answer.body.data.expires_at).to.equal(end)
      expect(await pending(answer.body.data.transaction_id)).to.include({ paygate_customer_id: customer_id })
    }
    for (const seconds of [1799, 86401])
      expectFieldError(await seller.post(PATH, { ...body, expires_in: seconds }), 'expires_in')
  })

  it('answers 400 invalid_request for a field that is missing or belongs to the other mode', async () => {
    const both = ['external_ref', 'mode', 'success_url', 'cancel_url']
    for (const field of [...both, 'price_id'])
      expectFieldError(await seller.post(PATH, without(subscription(), field)), field)
    for (const field of [...both, 'plan_ref', 'amount', 'currency']) {
      expectFieldError(await seller.post(PATH, without(payment(), field)), field)
    }
    const others: [field: string, body: object][] = [
      ['amount', { ...subscription(), amount: 5000 }],
      ['currency', { ...subscription(), currency: 'VND' }],
      ['plan_ref', { ...subscription(), plan_ref: 'book' }],
      ['price_id', { ...payment(), price_id: priceId(plan) }],
      ['skip_trial', { ...payment(), skip_trial: true }],
      ['extra', { ...payment(), extra: {} }],
      ['mode', { ...payment(), mode: 'setup' }],
    ]
    for (const [field, body] of others) expectFieldError(await seller.post(PATH, body), field)
  })

  it('answers 400 invalid_request for an external_ref that no URL can hold', async () => {
    for (const external_ref of ['.', '..']) {
      for (const body of [subscription(), payment()])
        expectFieldError(await seller.post(PATH, { ...body, external_ref }), 'external_ref')
    }
    expect((await seller.post(PATH, { ...payment(), external_ref: '...' })).status).to.equal(201)
  })

  it('answers 400 invalid_request for URLs that are not absolute http(s) URLs', async () => {
    const bad = [
      '/ok',
      'shop.example/ok',
      '//shop.example/ok',
      'ftp://shop.example/ok',
      'javascript:alert(1)',
      'https://',
      'https:///shop.example/ok',
      'http:////shop.example/ok',
      'https://\\shop.example/ok',
    ]
    bad.push(
      'https://user:secret@shop.example/ok',
      'https://shop.example/\r\nX-Evil: 1',
      `https://shop.example/${'a'.repeat(2048)}`,
    )
    for (const address of bad) {
      expectFieldError(await seller.post(PATH, { ...payment(), success_url: address }), 'success_url')
      expectFieldError(await seller.post(PATH, { ...payment(), cancel_url: address }), 'cancel_url')
    }
    const longest = `https://shop.example/${'a'.repeat(2048 - 21)}`
    expect((await seller.post(PATH, { ...payment(), success_url: longest })).status).to.equal(201)
  })

  it("answers 400 price_not_found for an unknown price, another app's, and anything that is not a price id", async () => {
    const foreign = await aPlan(service.ctx, await anApp(service.ctx))
    for (const price_id of [
      priceId(foreign),
      'price_999999999',
      'price_x',
      String(plan.prices[0]!.id),
      '',
      `plan_${plan.id}`,
    ]) {
      const answer = await seller.post(PATH, { ...subscription(), price_id })
      expectError(answer, 400, 'price_not_found')
      expect(answer.body.error.field).to.equal('price_id')
    }
  })

  it("answers 400 invalid_request for a customer that is unknown or another app's", async () => {
    const foreign = await aCustomer(service.ctx, await anApp(service.ctx))
    for (const customer_id of [`cus_${foreign.id}`, 'cus_999999999', 'cus_x', '1', '']) {
      for (const body of [subscription(), payment()]) {
        expectFieldError(await seller.post(PATH, { ...body, customer_id }), 'customer_id')
      }
    }
  })

  it('answers 400 payment_method_unavailable for a method that is not enabled, invalid_request for one that does not exist', async () => {
    for (const payment_method of ['card', 'payos', 'bank_transfer']) {
      const answer = await seller.post(PATH, { ...payment(), payment_method })
      expectError(answer, 400, 'payment_method_unavailable')
      expect(answer.body.error.field).to.equal('payment_method')
    }
    for (const payment_method of ['stripe', 'TEST', 'cash', '']) {
      expectFieldError(await seller.post(PATH, { ...payment(), payment_method }), 'payment_method')
    }
    await disableMethod(service.ctx, 'tester', app.app, 'test')
    expectError(await seller.post(PATH, { ...payment(), payment_method: 'test' }), 400, 'payment_method_unavailable')
  })

  it('with skip_trial checks the method against the regular amount only', async () => {
    await enableMethod(service.ctx, 'tester', app.app, 'card', { secretKey: 'sk_test_1', webhookSecret: 'whsec_1' })
    const trial = { ...PAID_TRIAL, amount: 10 }
    const dollars = await aPlan(service.ctx, app, { code: 'usd', prices: [{ ...MONTHLY, ...DOLLARS, trial }] })
    const body = { ...subscription(), price_id: priceId(dollars), payment_method: 'card' }
    expectError(await seller.post(PATH, body), 400, 'payment_method_unavailable')
    const answer = await seller.post(PATH, { ...body, skip_trial: true })
    expect(answer.status, answer.text).to.equal(201)
    expect(await pending(answer.body.data.transaction_id)).to.include({ amount: 999, currency: 'USD' })
  })

  it('checks the method against the regular amount only, too, where the end user has had the trial', async () => {
    await enableMethod(service.ctx, 'tester', app.app, 'card', { secretKey: 'sk_test_1', webhookSecret: 'whsec_1' })
    const trial = { ...PAID_TRIAL, amount: 10 }
    const dollars = await aPlan(service.ctx, app, { code: 'usd', prices: [{ ...MONTHLY, ...DOLLARS, trial }] })
    await paid(service.ctx, app, { price_id: priceId(dollars) })
    const body = { ...subscription(), price_id: priceId(dollars), payment_method: 'card' }
    const answer = await seller.post(PATH, body)
    expect(answer.status, answer.text).to.equal(201)
    expect(answer.body.data.trial).to.equal(null)
  })

  it('answers 409 already_lifetime to the owner of a lifetime subscription, in mode subscription only', async () => {
    await paid(service.ctx, app, { price_id: priceId(plan, 3) })
    expectError(await seller.post(PATH, subscription()), 409, 'already_lifetime')
    expectError(await seller.post(PATH, subscription(1)), 409, 'already_lifetime')
    expect((await seller.post(PATH, payment())).status).to.equal(201)
    expect((await seller.post(PATH, { ...subscription(), external_ref: 'user-2' })).status).to.equal(201)
  })

  it('leaves nothing behind when it is refused', async () => {
    await seller.post(PATH, { ...subscription(), customer_id: 'cus_1' })
    await seller.post(PATH, { ...subscription(1), price_id: 'price_1' })
    expect((await seller.get('/api/v1/transactions')).body.data).to.deep.equal([])
    expectError(await seller.get('/api/v1/subscriptions/user-1'), 404, 'not_found')
  })

  function subscription(index = 0): Record<string, unknown> {
    return { external_ref: 'user-1', mode: 'subscription', price_id: priceId(plan, index), ...URLS }
  }

  function payment(): Record<string, unknown> {
    return { external_ref: 'user-1', mode: 'payment', plan_ref: 'book', amount: 5000, currency: 'VND', ...URLS }
  }

  async function pending(transactionId: number | null): Promise<Transaction> {
    const { data } = (await seller.get(`/api/v1/transactions/${transactionId}`)).body
    expect(data).to.include({ status: 'pending', amount_received: 0, completed_at: null })
    return data
  }
})

function without(body: Record<string, unknown>, field: string): Record<string, unknown> {
  return Object.fromEntries(Object.entries(body).filter(([name]) => name !== field))
}
