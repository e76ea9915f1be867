import { perform } from '#commands/perform.ts'
import { operator } from '#commands/caller.ts'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { listAuditEntries } from '#commands/store.ts'
import { addPrice } from '#plans/add-price.ts'
import { presentPrice } from '#plans/present.ts'
import { inTransaction } from '#commands/transaction.ts'
import { insertPrices, type PlanWithPrices } from '#plans/store.ts'
import { updatePrice } from '#plans/update-price.ts'
import type { Plan } from '../../client/src/types.ts'
import { startService, type Answer, type SellerClient, type TestService } from '../support/api.ts'
import { expectFieldError, expectError } from '../support/expect-error.ts'
import {
  anApp,
  aPlan,
  aSubscription,
  LIFETIME,
  MONTHLY,
  PAID_TRIAL,
  priceId,
  YEARLY,
  type TestApp,
} from '../support/factories.ts'

let service: TestService
let app: TestApp
let seller: SellerClient
let plan: PlanWithPrices
let path: `/api/v1/plans/plan_${number}`
describe('prices of a plan', () => {
  beforeEach(async () => {
    service = await startService()
    app = await anApp(service.ctx)
    seller = service.seller(app)
    plan = await aPlan(service.ctx, app)
    path = `/api/v1/plans/plan_${plan.id}`
  })

  afterEach(() => service.stop())

  describe('POST /api/v1/plans/{id}/prices', () => {
    it('answers 201 with the whole plan; the other prices stay active', async () => {
      service.ctx.clock.advance('1d')
      const answer = await seller.post(`${path}/prices`, {
        ...YEARLY,
        name: 'Yearly',
        currency: 'usd',
        trial: PAID_TRIAL,
      })
      expect(answer.status).to.equal(201)
      const { prices, ...rest } = answer.body.data
      expect(rest).to.include({ id: `plan_${plan.id}`, status: 'active', updated_at: '2026-03-02 10:00:00' })
      expect(prices.map(({ status }) => status)).to.deep.equal(['active', 'active'])
      const { id, ...added } = prices[1]!
      expect(id).to.not.equal(priceId(plan))
      expect(added).to.deep.equal({
        name: 'Yearly',
        amount: 990000,
        currency: 'USD',
        interval_unit: 'year',
        interval_count: 1,
        trial: { amount: 10000, interval_unit: 'week', interval_count: 1 },
        status: 'active',
        created_at: '2026-03-02 10:00:00',
      })
      expect((await seller.get(path)).body).to.deep.equal(answer.body)
    })

    it('shows archived prices too, as writes do', async () => {
      await seller.patch(`${path}/prices/${priceId(plan)}`, { status: 'archived' })
      const answer = await seller.post(`${path}/prices`, LIFETIME)
      expect(statuses(answer)).to.deep.equal(['archived', 'active'])
      expect(answer.body.data.prices[1]).to.include({ interval_unit: 'lifetime', interval_count: 1, trial: null })
    })

    it('can be added to an archived plan, which stays archived', async () => {
      await seller.patch(path, { status: 'archived' })
      const answer = await seller.post(`${path}/prices`, YEARLY)
      expect(answer.status).to.equal(201)
      expect(answer.body.data.status).to.equal('archived')
    })

    it('can exceed the 20 prices that a plan is created with', async () => {
      const full = await aPlan(service.ctx, app, { prices: Array.from({ length: 20 }, () => MONTHLY) })
      const answer = await seller.post(`/api/v1/plans/plan_${full.id}/prices`, YEARLY)
      expect(answer.body.data.prices).to.have.length(21)
    })

    it('answers 400 invalid_request that names the field, and adds nothing', async () => {
      const trial = { ...PAID_TRIAL }
      const cases: [field: string | null, body: unknown][] = [
        ['amount', { ...MONTHLY, amount: 0 }],
        ['amount', { currency: 'VND', interval_unit: 'month', interval_count: 1 }],
        ['currency', { ...MONTHLY, currency: '' }],
        ['interval_unit', { ...MONTHLY, interval_unit: null }],
        ['interval_count', { ...MONTHLY, interval_count: undefined }],
        ['interval_count', { ...LIFETIME, interval_count: 12 }],
        ['trial', { ...LIFETIME, trial }],
        ['trial', { ...LIFETIME, interval_count: 1, trial: { ...trial, amount: 0 } }],
        ['trial.amount', { ...MONTHLY, trial: { ...trial, amount: '0' } }],
        ['trial.interval_unit', { ...MONTHLY, trial: { ...trial, interval_unit: 'lifetime' } }],
        ['trial.interval_count', { ...MONTHLY, trial: { ...trial, interval_count: undefined } }],
        ['name', { ...MONTHLY, name: '\u0000' }],
        ['status', { ...MONTHLY, status: 'archived' }],
        [null, []],
        [null, [MONTHLY]],
        [null, null],
      ]
      for (const [field, body] of cases) expectFieldError(await seller.post(`${path}/prices`, body), field)
      expect((await seller.get(path)).body.data.prices).to.have.length(1)
    })

    it("answers 404 not_found for an unknown plan, another app's, and anything that is not a plan id", async () => {
      const foreign = await aPlan(service.ctx, await anApp(service.ctx))
      for (const id of [`plan_${foreign.id}`, 'plan_999999999', `${plan.id}`, `plan_0${plan.id}`]) {
        expectError(await seller.post(`/api/v1/plans/${id}/prices`, YEARLY), 404, 'not_found')
      }
    })
  })

  describe('PATCH /api/v1/plans/{id}/prices/{price_id}', () => {
    it('renames, archives and restores a price, and updates the updated_at of its plan', async () => {
      const price = `${path}/prices/${priceId(plan)}` as const
      service.ctx.clock.advance('1h')
      const renamed = await seller.patch(price, { name: 'Monthly' })
      expect(renamed.status).to.equal(200)
      expect(renamed.body.data).to.include({ id: `plan_${plan.id}`, updated_at: '2026-03-01 11:00:00' })
      expect(renamed.body.data.prices[0]).to.include({ name: 'Monthly', status: 'active', amount: 99000 })
      service.ctx.clock.advance('1h')
      const archived = await seller.patch(price, { status: 'archived' })
      expect(archived.body.data.updated_at).to.equal('2026-03-01 12:00:00')
      expect(archived.body.data.prices[0]).to.include({ name: 'Monthly', status: 'archived' })
      expect((await seller.get(path)).body.data.prices).to.deep.equal([])
      const restored = await seller.patch(price, { status: 'active', name: null })
      expect(restored.body.data.prices[0]).to.include({ name: null, status: 'active' })
      expect((await seller.get(path)).body.data.prices).to.have.length(1)
    })

    it('answers 400 invalid_request for an empty body, and for amount, currency and interval, which never change', async () => {
      const price = `${path}/prices/${priceId(plan)}` as const
      expectFieldError(await seller.patch(price, {}), null)
      const cases: [field: string, body: object][] = [
        ['amount', { amount: 5 }],
        ['currency', { name: 'A', currency: 'USD' }],
        ['interval_unit', { interval_unit: 'year' }],
        ['interval_count', { interval_count: 2 }],
        ['trial', { trial: null }],
        ['name', { name: '' }],
        ['name', { name: 7 }],
        ['status', { status: 'gone' }],
        ['status', { status: null }],
      ]
      for (const [field, body] of cases) expectFieldError(await seller.patch(price, body), field)
      const [unchanged] = (await seller.get(path)).body.data.prices
      expect(unchanged).to.deep.include(MONTHLY)
    })

    it("answers 404 not_found for a price under another plan, another app's plan, and anything that is not a price id", async () => {
      const sibling = await aPlan(service.ctx, app)
      const other = await anApp(service.ctx)
      const foreign = await aPlan(service.ctx, other)
      const id = plan.prices[0]!.id
      const addresses = [
        `${path}/prices/${priceId(sibling)}`,
        `${path}/prices/${priceId(foreign)}`,
        `/api/v1/plans/plan_${foreign.id}/prices/${priceId(foreign)}`,
        `/api/v1/plans/plan_${sibling.id}/prices/${priceId(plan)}`,
        `/api/v1/plans/plan_999999999/prices/${priceId(plan)}`,
        `${path}/prices/price_999999999`,
        ...[`${id}`, `price_0${id}`, 'price_x', `plan_${id}`, 'price_99999999999999999999'].map(
          (text) => `${path}/prices/${text}`,
        ),
      ]
      for (const address of addresses) expectError(await seller.patch(address, { name: 'Stolen' }), 404, 'not_found')
      expect((await service.seller(other).get(`/api/v1/plans/plan_${foreign.id}`)).body.data.prices[0]!.name).to.equal(
        null,
      )
    })

    it('archives a price: a checkout for it, or for any price of an archived plan, answers price_not_found', async () => {
      const checkout = { external_ref: 'user-1', mode: 'subscription', price_id: priceId(plan) }
      const urls = { success_url: 'https://shop.example/ok', cancel_url: 'https://shop.example/no' }
      const open = () => seller.post('/api/v1/checkout-sessions', { ...checkout, ...urls })
      const price = `${path}/prices/${priceId(plan)}` as const
      await seller.patch(price, { status: 'archived' })
      expectError(await open(), 400, 'price_not_found')
      await seller.patch(price, { status: 'active' })
      expect((await open()).status).to.equal(201)
      await seller.patch(path, { status: 'archived' })
      expectError(await open(), 400, 'price_not_found')
      await seller.patch(path, { status: 'active' })
      expect((await open()).status).to.equal(201)
    })

    it('leaves subscriptions on an archived price unchanged', async () => {
      await aSubscription(service.ctx, app, plan)
      const before = await seller.get('/api/v1/subscriptions/user-1')
      await seller.patch(`${path}/prices/${priceId(plan)}`, { status: 'archived' })
      await seller.patch(path, { status: 'archived', name: 'Old' })
      const after = await seller.get('/api/v1/subscriptions/user-1')
      expect(before.status).to.equal(200)
      expect(after.body).to.deep.equal(before.body)
    })
  })

  it('may be any number over the years: the plan can still be changed, and a price added', async () => {
    const { ctx } = service
    const rows = Array.from({ length: 500 }, () => ({ ...plan.prices[0]!, id: undefined, name: 'A name'.repeat(20) }))
    await inTransaction(ctx, (tx) => insertPrices(tx, rows))
    const added = await seller.post(`${path}/prices`, YEARLY)
    expect([added.status, added.body.data.prices.length]).to.deep.equal([201, 502])
    const named = await seller.patch(path, { name: 'Gold' })
    expect([named.status, named.body.data.name, named.body.data.prices.length]).to.deep.equal([200, 'Gold', 502])
  })

  describe('price commands', () => {
    it('are written to the audit log with their operator', async () => {
      const { ctx } = service
      const added = await perform(ctx, operator('ann'), addPrice, YEARLY, { app: app.app, planId: plan.id })
      const { id } = added.prices[1]!
      await perform(
        ctx,
        operator('ann'),
        updatePrice,
        { status: 'archived' },
        { app: app.app, planId: plan.id, priceId: id },
      )
      const [archive] = await listAuditEntries(ctx.db, { subject: `price ${id}`, limit: 10 })
      expect(archive).to.include({ actor: 'ann', action: 'price.update', appId: app.app.id })
      expect(archive!.beforeState).to.include({ status: 'active' })
      expect(archive!.afterState).to.include({ status: 'archived' })
      const [add] = await listAuditEntries(ctx.db, { subject: `plan ${plan.id}`, limit: 10 })
      expect(add).to.include({ actor: 'ann', action: 'price.add' })
      expect(add!.afterState).to.deep.include({ prices: 2, added: [{ ...presentPrice(added.prices[1]!) }] })
    })

    it('that are added at once each begin in the audit log where the one before ended', async () => {
      const { ctx } = service
      const add = () => perform(ctx, operator('ann'), addPrice, YEARLY, { app: app.app, planId: plan.id })
      await Promise.all([add(), add(), add()])
      const entries = (await listAuditEntries(ctx.db, { subject: `plan ${plan.id}`, limit: 3 })).toReversed()
      const count = (state: unknown): number => (state as { prices: number }).prices
      expect(entries.map(({ beforeState, afterState }) => [count(beforeState), count(afterState)])).to.deep.equal([
        [1, 2],
        [2, 3],
        [3, 4],
      ])
    })
  })

  function statuses(answer: Answer<Plan>): string[] {
    return answer.body.data.prices.map(({ status }) => status)
  }
})
