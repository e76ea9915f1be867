import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import type { PlanWithPrices } from '#plans/store.ts'
import { startService, type SellerClient, type TestService } from '../support/api.ts'
import { expectFieldError, expectError } from '../support/expect-error.ts'
import {
  aCustomer,
  anApp,
  aPlan,
  aSubscription,
  FREE_TRIAL,
  LIFETIME,
  MONTHLY,
  paid,
  priceId,
  YEARLY,
  type TestApp,
} from '../support/factories.ts'

const PATH = '/api/v1/subscriptions/user-1'

let service: TestService
let app: TestApp
let seller: SellerClient
let plan: PlanWithPrices
describe('the API of subscriptions', () => {
  beforeEach(async () => {
    service = await startService()
    app = await anApp(service.ctx)
    seller = service.seller(app)
    plan = await aPlan(service.ctx, app, { prices: [MONTHLY, YEARLY, LIFETIME, { ...MONTHLY, trial: FREE_TRIAL }] })
  })

  afterEach(() => service.stop())

  describe('GET /api/v1/subscriptions/{external_ref}', () => {
    it('returns the Subscription, field by field', async () => {
      await aSubscription(service.ctx, app, plan)
      const answer = await seller.get(PATH)
      expect(answer.status).to.equal(200)
      expect(answer.body).to.deep.equal({
        success: true,
        data: {
          plan_ref: plan.code,
          plan_id: `plan_${plan.id}`,
          price_id: priceId(plan),
          customer_id: null,
          status: 'active',
          current_period_end: '2026-04-01 10:00:00',
          in_trial: false,
          trial_ends_at: null,
        },
      })
    })

    it('shows a trial while it is the latest period, even after it ended', async () => {
      await paid(service.ctx, app, { price_id: priceId(plan, 3) })
      const trial = { in_trial: true, trial_ends_at: '2026-03-08 10:00:00', current_period_end: '2026-03-08 10:00:00' }
      expect((await seller.get(PATH)).body.data).to.include({ status: 'active', ...trial })
      service.ctx.clock.set('2026-03-08 10:00:00')
      expect((await seller.get(PATH)).body.data).to.include({ status: 'expired', ...trial })
    })

    it('returns no end for a lifetime subscription', async () => {
      await paid(service.ctx, app, { price_id: priceId(plan, 2) })
      service.ctx.clock.set('2099-01-01 00:00:00')
      expect((await seller.get(PATH)).body.data).to.include({ status: 'active', current_period_end: null })
    })

    it("answers 404 not_found for an end user without a subscription, even with an open checkout, and for another app's", async () => {
      const other = await anApp(service.ctx)
      await aSubscription(service.ctx, other, await aPlan(service.ctx, other))
      await seller.post('/api/v1/checkout-sessions', {
        external_ref: 'user-1',
        mode: 'subscription',
        price_id: priceId(plan),
        success_url: 'https://shop.example/ok',
        cancel_url: 'https://shop.example/no',
      })
      expectError(await seller.get(PATH), 404, 'not_found')
      expectError(await seller.get('/api/v1/subscriptions/nobody'), 404, 'not_found')
    })

    it('compares external_refs exactly', async () => {
      await aSubscription(service.ctx, app, plan)
      for (const name of ['USER-1', 'user-1%20', 'us\u00e9r-1']) {
        expectError(
          await seller.get(`/api/v1/subscriptions/${encodeURI(name).replace('%2520', '%20')}`),
          404,
          'not_found',
        )
      }
    })
  })

  describe('PUT /api/v1/subscriptions/{external_ref}/plan', () => {
    it('answers 200 with the Subscription: the new plan and price at once, the period unchanged', async () => {
      await aSubscription(service.ctx, app, plan)
      const other = await aPlan(service.ctx, app, { prices: [YEARLY] })
      const before = (await seller.get(PATH)).body.data
      const answer = await seller.put(`${PATH}/plan`, { price_id: priceId(other) })
      expect(answer.status).to.equal(200)
      expect(answer.body.data).to.deep.equal({
        ...before,
        plan_ref: other.code,
        plan_id: `plan_${other.id}`,
        price_id: priceId(other),
      })
      expect((await seller.get(PATH)).body).to.deep.equal(answer.body)
    })

    it("answers 400 price_not_found for an archived price and for another app's", async () => {
      await aSubscription(service.ctx, app, plan)
      const foreign = await aPlan(service.ctx, await anApp(service.ctx))
      await seller.patch(`/api/v1/plans/plan_${plan.id}/prices/${priceId(plan, 1)}`, { status: 'archived' })
      for (const price_id of [priceId(foreign), priceId(plan, 1), 'price_x', '']) {
        expectError(await seller.put(`${PATH}/plan`, { price_id }), 400, 'price_not_found')
      }
      expect((await seller.get(PATH)).body.data.price_id).to.equal(priceId(plan))
    })

    it('answers 409 already_lifetime to the owner of a lifetime subscription', async () => {
      await paid(service.ctx, app, { price_id: priceId(plan, 2) })
      expectError(await seller.put(`${PATH}/plan`, { price_id: priceId(plan) }), 409, 'already_lifetime')
    })

    it('answers 404 not_found without a subscription, and 400 invalid_request for an invalid body', async () => {
      expectError(await seller.put(`${PATH}/plan`, { price_id: priceId(plan) }), 404, 'not_found')
      expectFieldError(await seller.put(`${PATH}/plan`, {}), 'price_id')
      expectFieldError(await seller.put(`${PATH}/plan`, { price_id: priceId(plan), now: true }), 'now')
    })
  })

  describe('PUT /api/v1/subscriptions/{external_ref}/customer', () => {
    it('answers 200 with the Subscription and its customer, and replaces an earlier one', async () => {
      await aSubscription(service.ctx, app, plan)
      const before = (await seller.get(PATH)).body.data
      for (const name of ['An', 'Binh']) {
        const customer_id = `cus_${(await aCustomer(service.ctx, app, { name })).id}`
        const answer = await seller.put(`${PATH}/customer`, { customer_id })
        expect(answer.status).to.equal(200)
        expect(answer.body.data).to.deep.equal({ ...before, customer_id })
        expect((await seller.get(PATH)).body).to.deep.equal(answer.body)
      }
    })

    it("answers 400 invalid_request for a customer that is unknown or another app's", async () => {
      await aSubscription(service.ctx, app, plan)
      const foreign = await aCustomer(service.ctx, await anApp(service.ctx))
      for (const customer_id of [`cus_${foreign.id}`, 'cus_999999999', 'cus_x', '']) {
        expectFieldError(await seller.put(`${PATH}/customer`, { customer_id }), 'customer_id')
      }
      expectFieldError(await seller.put(`${PATH}/customer`, {}), 'customer_id')
      expect((await seller.get(PATH)).body.data.customer_id).to.equal(null)
    })

    it('answers 404 not_found without a subscription', async () => {
      const customer_id = `cus_${(await aCustomer(service.ctx, app)).id}`
      expectError(await seller.put(`${PATH}/customer`, { customer_id }), 404, 'not_found')
    })
  })
})
