import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import type { PlanWithPrices } from '#plans/store.ts'
import { addMs, asAppTime, DAY_MS } from '#shared/time.ts'
import { subscriptions } from '#subscriptions/store.ts'
import { startService, type SellerClient, type TestService } from '../support/api.ts'
import { expectFieldError, expectError } from '../support/expect-error.ts'
import { startIdentityClients } from '../support/identity-clients.ts'
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
import { insertMany, rowsLike } from '../support/many-rows.ts'

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

  describe('GET /api/v1/subscriptions', () => {
    const LIST = '/api/v1/subscriptions'
    const refsOf = async (query = '') => {
      const answer = await seller.get(`${LIST}?${query}`)
      expect(answer.status, answer.text).to.equal(200)
      return answer.body.data.map(({ external_ref: ref }: { external_ref: string }) => ref)
    }

    const pagesOf = async (query: string) => {
      const seen: string[] = []
      let cursor = ''
      do {
        const { body } = await seller.get(`${LIST}?${query}${cursor}`)
        seen.push(...body.data.map(({ external_ref: ref }: { external_ref: string }) => ref))
        cursor = body.next_cursor === null ? '' : `&cursor=${body.next_cursor}`
      } while (cursor !== '')
      return seen
    }

    it('lists each Subscription with its external_ref, ordered by it, those of the app alone', async () => {
      const other = await anApp(service.ctx)
      await aSubscription(service.ctx, other, await aPlan(service.ctx, other), { external_ref: 'another' })
      for (const external_ref of ['b', 'a', 'B', 'é']) await aSubscription(service.ctx, app, plan, { external_ref })
      const { body } = await seller.get(LIST)
      expect(body.next_cursor).to.equal(null)
      expect(body.data.map(({ external_ref: ref }: { external_ref: string }) => ref)).to.deep.equal([
        'B',
        'a',
        'b',
        'é',
      ])
      expect(body.data[1]).to.deep.equal({ external_ref: 'a', ...(await seller.get(`${LIST}/a`)).body.data })
    })

    it('filters by status, plan, ends_after and ends_before, both exclusive; a lifetime matches neither', async () => {
      const gold = await aPlan(service.ctx, app, { code: 'gold', prices: [YEARLY] })
      await paid(service.ctx, app, { price_id: priceId(plan), external_ref: 'month' })
      await paid(service.ctx, app, { price_id: priceId(plan, 2), external_ref: 'lifetime' })
      await paid(service.ctx, app, { price_id: priceId(gold), external_ref: 'year' })
      service.ctx.clock.set('2026-04-01 10:00:00')
      expect(await refsOf('status=active')).to.deep.equal(['lifetime', 'year'])
      expect(await refsOf('status=expired')).to.deep.equal(['month'])
      expect(await refsOf('plan=gold')).to.deep.equal(['year'])
      expect(await refsOf('plan=nothing')).to.deep.equal([])
      expect(await refsOf('ends_after=2026-04-01+09:59:59')).to.deep.equal(['month', 'year'])
      expect(await refsOf('ends_after=2026-04-01+10:00:00')).to.deep.equal(['year'])
      expect(await refsOf('ends_before=2027-03-01+10:00:01')).to.deep.equal(['month', 'year'])
      expect(await refsOf('ends_before=2027-03-01+10:00:00')).to.deep.equal(['month'])
      expect(await refsOf('status=active&plan=gold&ends_after=2026-05-01+00:00:00')).to.deep.equal(['year'])
      expect(await refsOf('ends_after=9999-12-31+23:59:59')).to.deep.equal([])
    })

    it('pages through all of them', async () => {
      const refs = ['a', 'b', 'c', 'd', 'e']
      for (const external_ref of refs.toReversed()) await aSubscription(service.ctx, app, plan, { external_ref })
      expect(await pagesOf('limit=2')).to.deep.equal(refs)
    })

    it('finds all that match among many, in order, wherever a page begins', async () => {
      const { ctx } = service
      await aSubscription(ctx, app, plan, { external_ref: 'last' })
      const row = (await ctx.db.one(subscriptions, 'WHERE app_id = ?', [app.app.id]))!
      // The expired ones stand together in places, so that some of what is read at once has none that match.
      const isExpired = (n: number) => n % 3 === 0 || (n > 200 && n < 420)
      const refOf = (n: number) => `a-${String(n).padStart(3, '0')}`
      const over = asAppTime(addMs(ctx.clock.now(), -DAY_MS))
      const many = rowsLike(row, 600, (n) => ({
        endUserId: row.endUserId + n,
        externalRef: refOf(n),
        renewalToken: String(n),
        ...(isExpired(n) ? { currentPeriodEnd: over } : {}),
      }))
      await insertMany(ctx.db, subscriptions, many)
      const active = Array.from(many, (_, index) => index + 1).filter((n) => !isExpired(n))
      expect(await pagesOf('status=active&limit=90')).to.deep.equal([...active.map(refOf), 'last'])
    })

    it("answers 400 for what is no filter, and 403 to an end user's client", async () => {
      const bad = {
        status: 'trial',
        plan: '',
        ends_after: '2026-04-31+00:00:00',
        ends_before: 'x',
        limit: '0',
        cursor: 'x',
      }
      for (const [field, value] of Object.entries(bad))
        expectFieldError(await seller.get(`${LIST}?${field}=${value}`), field)
      const clients = await startIdentityClients()
      const headers = await clients.headers(service.ctx, await clients.app(service.ctx), 'user-1')
      expectError(await service.call('GET', LIST, { headers }), 403, 'forbidden')
      await clients.stop()
    })
  })

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
