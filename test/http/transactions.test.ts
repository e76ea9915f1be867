import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import type { PlanWithPrices } from '#plans/store.ts'
import { startService, type SellerClient, type TestService } from '../support/api.ts'
import { expectFieldError, expectError } from '../support/expect-error.ts'
import {
  aCheckout,
  aCustomer,
  anApp,
  aPlan,
  LIFETIME,
  MONTHLY,
  paid,
  priceId,
  type TestApp,
} from '../support/factories.ts'

const PATH = '/api/v1/transactions'

let service: TestService
let app: TestApp
let seller: SellerClient
let plan: PlanWithPrices
describe('the API of transactions', () => {
  beforeEach(async () => {
    service = await startService()
    app = await anApp(service.ctx)
    seller = service.seller(app)
    plan = await aPlan(service.ctx, app, { prices: [MONTHLY, LIFETIME] })
  })

  afterEach(() => service.stop())

  describe('GET /api/v1/transactions/{id}', () => {
    it('returns the payment of a subscription, field by field', async () => {
      const customer_id = `cus_${(await aCustomer(service.ctx, app)).id}`
      const { transaction_id } = await paid(service.ctx, app, { price_id: priceId(plan), customer_id })
      const answer = await seller.get(`${PATH}/${transaction_id}`)
      expect(answer.status).to.equal(200)
      expect(answer.body).to.deep.equal({
        success: true,
        data: {
          transaction_id,
          external_ref: 'user-1',
          mode: 'subscription',
          plan_ref: plan.code,
          price_id: priceId(plan),
          paygate_customer_id: customer_id,
          amount: 99000,
          amount_received: 99000,
          amount_refunded: 0,
          discount: null,
          currency: 'VND',
          status: 'completed',
          provider_code: 'test',
          flagged: false,
          flag_reason: null,
          created_at: '2026-03-01 10:00:00',
          completed_at: '2026-03-01 10:00:00',
          metadata: {},
        },
      })
    })

    it('returns an open one-time payment with null for what is not known yet', async () => {
      const { transaction_id } = await aCheckout(service.ctx, app, { mode: 'payment', ...BOOK })
      expect((await seller.get(`${PATH}/${transaction_id}`)).body.data).to.include({
        mode: 'payment',
        plan_ref: 'book',
        price_id: null,
        paygate_customer_id: null,
        amount_received: 0,
        status: 'pending',
        provider_code: null,
        completed_at: null,
      })
    })

    it("answers 404 not_found for an unknown id, another app's, and anything that is not an id", async () => {
      const { transaction_id } = await aCheckout(service.ctx, await anApp(service.ctx), { mode: 'payment', ...BOOK })
      for (const id of [
        String(transaction_id),
        '999999999',
        '0',
        '01',
        '-1',
        '1.0',
        'x',
        'txn_1',
        '9007199254740993',
      ]) {
        expectError(await seller.get(`${PATH}/${id}`), 404, 'not_found')
      }
    })
  })

  describe('GET /api/v1/transactions', () => {
    it('lists only the app’s transactions, newest first, and filters by external_ref, status and flagged', async () => {
      await aCheckout(service.ctx, await anApp(service.ctx), { mode: 'payment', ...BOOK })
      const open = await aCheckout(service.ctx, app, { mode: 'payment', ...BOOK, external_ref: 'user-2' })
      const [first, second] = [await lifetimeCheckout(), await lifetimeCheckout()]
      await Promise.all([first, second].map((session) => service.call('POST', `${session.checkout_url}/resolve`, TEST)))
      const list = async (query: '' | `?${string}`) =>
        (await seller.get(`${PATH}${query}`)).body.data.map(({ transaction_id: id }) => id)
      const [flagged] = await list('?flagged=true')
      expect(flagged).to.be.oneOf([first.transaction_id, second.transaction_id])
      expect(await list('')).to.deep.equal([second.transaction_id, first.transaction_id, open.transaction_id])
      expect(await list('?external_ref=user-2')).to.deep.equal([open.transaction_id])
      expect(await list('?status=pending')).to.deep.equal([open.transaction_id])
      expect(await list('?status=completed')).to.deep.equal([second.transaction_id, first.transaction_id])
      expect(await list('?status=refunded')).to.deep.equal([])
      expect(await list('?flagged=true')).to.have.length(1)
      expect(await list('?flagged=false&status=completed')).to.have.length(1)
      expect(await list('?external_ref=USER-2')).to.deep.equal([])
    })

    it('pages through all of them, even those created at the same instant', async () => {
      const made: unknown[] = []
      for (let index = 0; index < 5; index += 1) {
        made.unshift((await aCheckout(service.ctx, app, { mode: 'payment', ...BOOK })).transaction_id)
      }
      const seen: unknown[] = []
      let cursor = ''
      for (;;) {
        const { data, next_cursor } = (await seller.get(`${PATH}?limit=2${cursor}`)).body
        seen.push(...data.map(({ transaction_id: id }) => id))
        if (next_cursor === null) break
        cursor = `&cursor=${next_cursor}`
      }
      expect(seen).to.deep.equal(made)
    })

    it('pages through them in a sandbox whose clock is centuries ahead', async () => {
      service.ctx.clock.set('2300-01-01 10:00:00')
      const made = [await lifetimeCheckout(), await lifetimeCheckout()].map((session) => session.transaction_id)
      const first = (await seller.get(`${PATH}?limit=1`)).body
      const second = (await seller.get(`${PATH}?limit=1&cursor=${first.next_cursor}`)).body
      expect([...second.data, ...first.data].map(({ transaction_id: id }) => id)).to.deep.equal(made)
    })

    it('answers 400 invalid_request for a bad filter, limit or cursor', async () => {
      const bad = { status: 'open', flagged: '1', external_ref: '', limit: '0', cursor: 'x' }
      for (const [field, value] of Object.entries(bad))
        expectFieldError(await seller.get(`${PATH}?${field}=${value}`), field)
    })

    function lifetimeCheckout() {
      return aCheckout(service.ctx, app, { price_id: priceId(plan, 1) })
    }
  })

  const BOOK = { plan_ref: 'book', amount: 5000, currency: 'VND' }
  const TEST = { raw: '{"payment_method":"test"}', headers: { 'Content-Type': 'application/json' } }
})
