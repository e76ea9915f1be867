import { perform } from '#commands/perform.ts'
import { operator } from '#commands/caller.ts'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { listAuditEntries } from '#commands/store.ts'
import { createPlan } from '#plans/create-plan.ts'
import { updatePlan } from '#plans/update-plan.ts'
import { startService, type SellerClient, type TestService } from '../support/api.ts'
import { expectFieldError } from '../support/expect-error.ts'
import { anApp, aPlan, FREE_TRIAL, LIFETIME, MONTHLY, YEARLY, type TestApp } from '../support/factories.ts'
import { startIdentityClients } from '../support/identity-clients.ts'

let service: TestService
let app: TestApp
let seller: SellerClient
describe('plans', () => {
  beforeEach(async () => {
    service = await startService()
    app = await anApp(service.ctx)
    seller = service.seller(app)
  })

  afterEach(() => service.stop())

  describe('POST /api/v1/plans', () => {
    it('answers 201 with the whole plan', async () => {
      const answer = await seller.post('/api/v1/plans', {
        code: 'premium_2026-a',
        name: 'Premium',
        description: 'Everything.\nAnd more.',
        prices: [
          {
            name: 'Monthly',
            amount: 99000,
            currency: 'vnd',
            interval_unit: 'month',
            interval_count: 3,
            trial: FREE_TRIAL,
          },
          LIFETIME,
        ],
      })
      expect(answer.status).to.equal(201)
      const { id, prices } = answer.body.data
      expect(id).to.match(/^plan_[1-9]\d*$/)
      expect(prices.map((price: { id: string }) => price.id)).to.satisfy((ids: string[]) =>
        ids.every((text) => /^price_[1-9]\d*$/.test(text)),
      )
      const at = '2026-03-01 10:00:00'
      expect(answer.body).to.deep.equal({
        success: true,
        data: {
          id,
          code: 'premium_2026-a',
          name: 'Premium',
          description: 'Everything.\nAnd more.',
          status: 'active',
          prices: [
            {
              id: prices[0]!.id,
              name: 'Monthly',
              amount: 99000,
              currency: 'VND',
              interval_unit: 'month',
              interval_count: 3,
              trial: { amount: 0, interval_unit: 'day', interval_count: 7 },
              status: 'active',
              created_at: at,
            },
            {
              id: prices[1]!.id,
              name: null,
              amount: 2900000,
              currency: 'VND',
              interval_unit: 'lifetime',
              interval_count: 1,
              trial: null,
              status: 'active',
              created_at: at,
            },
          ],
          created_at: at,
          updated_at: at,
        },
      })
    })

    it('accepts a lifetime price whose interval_count is 1, and a description that is absent or null', async () => {
      const prices = [{ ...LIFETIME, interval_count: 1 }]
      const left = await seller.post('/api/v1/plans', { code: 'a', name: 'A', prices })
      const nulled = await seller.post('/api/v1/plans', { code: 'b', name: 'B', description: null, prices })
      expect([left.status, nulled.status]).to.deep.equal([201, 201])
      expect([left.body.data.description, nulled.body.data.description]).to.deep.equal([null, null])
      expect(left.body.data.prices[0]!.interval_count).to.equal(1)
    })

    it('accepts the longest texts, 20 prices and the largest amount', async () => {
      const price = { ...MONTHLY, name: '💳'.repeat(191), amount: 9007199254740991 }
      const plan = { code: 'c'.repeat(64), name: 'ế'.repeat(191), description: '💳'.repeat(5000) }
      const answer = await seller.post('/api/v1/plans', { ...plan, prices: Array(20).fill(price) })
      expect(answer.status).to.equal(201)
      expect(answer.body.data).to.deep.include(plan)
      expect(answer.body.data.prices).to.have.length(20)
      expect(answer.body.data.prices[19]).to.deep.include(price)
      const read = await seller.get(`/api/v1/plans/${answer.body.data.id}`)
      expect(read.body).to.deep.equal(answer.body)
    })

    it('accepts periods of up to a hundred years', async () => {
      const longest = { day: 36500, week: 5200, month: 1200, year: 100 }
      for (const [interval_unit, interval_count] of Object.entries(longest)) {
        const trial = { amount: 0, interval_unit, interval_count }
        const price = { ...MONTHLY, interval_unit, interval_count, trial }
        const answer = await seller.post('/api/v1/plans', { code: interval_unit, name: 'Long', prices: [price] })
        expect(answer.status, interval_unit).to.equal(201)
        const beyond = { ...price, interval_count: interval_count + 1 }
        expectFieldError(await seller.post('/api/v1/plans', planWith(beyond)), 'prices.0.interval_count')
        const beyondTrial = { ...price, trial: { ...trial, interval_count: interval_count + 1 } }
        expectFieldError(await seller.post('/api/v1/plans', planWith(beyondTrial)), 'prices.0.trial.interval_count')
      }
    })

    it('answers 409 plan_code_taken for a code that the app already uses, even on an archived plan', async () => {
      const plan = await aPlan(service.ctx, app, { code: 'premium' })
      const again = { code: 'premium', name: 'Other', prices: [MONTHLY] }
      const refused = await seller.post('/api/v1/plans', again)
      expect(refused.status).to.equal(409)
      expect(refused.body.error).to.include({ code: 'plan_code_taken', field: 'code' })
      await seller.patch(`/api/v1/plans/plan_${plan.id}`, { status: 'archived' })
      expect((await seller.post('/api/v1/plans', again)).body.error.code).to.equal('plan_code_taken')
      expect((await seller.get('/api/v1/plans')).body.data.plans).to.have.length(1)
    })

    it('lets two apps use the same code', async () => {
      await aPlan(service.ctx, app, { code: 'premium' })
      const other = service.seller(await anApp(service.ctx))
      const answer = await other.post('/api/v1/plans', { code: 'premium', name: 'Premium', prices: [MONTHLY] })
      expect(answer.status).to.equal(201)
    })

    it('creates one plan for ten concurrent requests with the same code', async () => {
      const body = { code: 'premium', name: 'Premium', prices: [MONTHLY, YEARLY] }
      const answers = await Promise.all(Array.from({ length: 10 }, () => seller.post('/api/v1/plans', body)))
      const statuses = answers.map(({ status }) => status).sort()
      expect(statuses).to.deep.equal([201, ...Array<number>(9).fill(409)])
      const { plans } = (await seller.get('/api/v1/plans')).body.data
      expect(plans).to.have.length(1)
      expect(plans[0]!.prices).to.have.length(2)
    })

    it('answers 400 invalid_request that names the first invalid field', async () => {
      const trial = { amount: 0, interval_unit: 'day', interval_count: 7 }
      const month = { ...MONTHLY }
      const cases: [field: string, body: unknown][] = [
        ['code', { name: 'A', prices: [month] }],
        ['code', { ...planWith(month), code: '' }],
        ['code', { ...planWith(month), code: 'Premium' }],
        ['code', { ...planWith(month), code: 'a b' }],
        ['code', { ...planWith(month), code: 'premium\n' }],
        ['code', { ...planWith(month), code: 'a'.repeat(65) }],
        ['name', { ...planWith(month), name: '' }],
        ['name', { ...planWith(month), name: ' ' }],
        ['name', { ...planWith(month), name: null }],
        ['name', { ...planWith(month), name: 'a'.repeat(192) }],
        ['description', { ...planWith(month), description: 'a'.repeat(5001) }],
        ['description', { ...planWith(month), description: 5 }],
        ['prices', { code: 'a', name: 'A' }],
        ['prices', { code: 'a', name: 'A', prices: [] }],
        ['prices', { code: 'a', name: 'A', prices: Array(21).fill(month) }],
        ['prices', { code: 'a', name: 'A', prices: month }],
        ['prices.0', planWith(null)],
        ['prices.0.amount', planWith({ ...month, amount: 0 })],
        ['prices.0.amount', planWith({ ...month, amount: -1 })],
        ['prices.0.amount', planWith({ ...month, amount: '100' })],
        ['prices.0.amount', planWith({ ...month, amount: 1.5 })],
        ['prices.0.amount', planWith({ ...month, amount: 9007199254740992 })],
        ['prices.0.currency', planWith({ ...month, currency: 'VN' })],
        ['prices.0.currency', planWith({ ...month, currency: 'VNDD' })],
        ['prices.0.currency', planWith({ ...month, currency: 'V1D' })],
        ['prices.0.interval_unit', planWith({ ...month, interval_unit: 'months' })],
        ['prices.0.interval_count', planWith({ ...month, interval_count: undefined })],
        ['prices.0.interval_count', planWith({ ...month, interval_count: 0 })],
        ['prices.0.interval_count', planWith({ ...month, interval_count: null })],
        ['prices.0.interval_count', planWith({ ...LIFETIME, interval_count: 2 })],
        ['prices.0.name', planWith({ ...month, name: 'a'.repeat(192) })],
        ['prices.0.name', planWith({ ...month, name: '' })],
        ['prices.0.trial', planWith({ ...LIFETIME, trial })],
        ['prices.0.trial', planWith({ ...month, trial: 'week' })],
        ['prices.0.trial.amount', planWith({ ...month, trial: { ...trial, amount: -1 } })],
        ['prices.0.trial.interval_unit', planWith({ ...month, trial: { ...trial, interval_unit: 'lifetime' } })],
        ['prices.0.trial.interval_count', planWith({ ...month, trial: { ...trial, interval_count: 0 } })],
        ['prices.0.trial.currency', planWith({ ...month, trial: { ...trial, currency: 'VND' } })],
        ['prices.0.status', planWith({ ...month, status: 'active' })],
        [
          'prices.1.trial.amount',
          { code: 'a', name: 'A', prices: [month, { ...month, trial: { ...trial, amount: 0.5 } }] },
        ],
        ['status', { ...planWith(month), status: 'active' }],
        ['prices.0.amount', { ...planWith({ ...month, amount: 0, currency: '' }), status: 'active' }],
      ]
      for (const [field, body] of cases) expectFieldError(await seller.post('/api/v1/plans', body), field)
      expect((await seller.get('/api/v1/plans')).body.data.plans).to.deep.equal([])
    })
  })

  describe('GET /api/v1/plans', () => {
    it('lists only the app’s plans, newest first, each with its active prices', async () => {
      const first = await aPlan(service.ctx, app, { prices: [MONTHLY, YEARLY] })
      const second = await aPlan(service.ctx, app)
      service.ctx.clock.advance('1s')
      const third = await aPlan(service.ctx, app)
      await aPlan(service.ctx, await anApp(service.ctx))
      await seller.patch(`/api/v1/plans/plan_${first.id}/prices/price_${first.prices[0]!.id}`, { status: 'archived' })
      const { status, body } = await seller.get('/api/v1/plans')
      expect(status).to.equal(200)
      expect(Object.keys(body)).to.deep.equal(['success', 'data'])
      expect(Object.keys(body.data)).to.deep.equal(['plans'])
      expect(body.data.plans.map(({ id }) => id)).to.deep.equal([third, second, first].map(({ id }) => `plan_${id}`))
      expect(priceIds(body.data.plans[2]!)).to.deep.equal([`price_${first.prices[1]!.id}`])
    })

    it('filters by status', async () => {
      const [kept, gone] = [await aPlan(service.ctx, app), await aPlan(service.ctx, app)]
      await seller.patch(`/api/v1/plans/plan_${gone.id}`, { status: 'archived' })
      const ids = async (query: '' | `?${string}`) =>
        (await seller.get(`/api/v1/plans${query}`)).body.data.plans.map(({ id }) => id)
      expect(await ids('?status=active')).to.deep.equal([`plan_${kept.id}`])
      expect(await ids('?status=archived')).to.deep.equal([`plan_${gone.id}`])
      expect(await ids('')).to.deep.equal([`plan_${gone.id}`, `plan_${kept.id}`])
    })

    it('answers 400 invalid_request for any other status', async () => {
      for (const query of [
        'status=',
        'status=deleted',
        'status=Active',
        'status=active&status=archived',
        'status=active%00',
      ]) {
        expectFieldError(await seller.get(`/api/v1/plans?${query}`), 'status')
      }
    })

    it('is empty for an app without plans', async () => {
      expect((await seller.get('/api/v1/plans')).body).to.deep.equal({ success: true, data: { plans: [] } })
    })
  })

  describe('GET /api/v1/plans/{id}', () => {
    it('returns an archived plan, too, with its active prices', async () => {
      const plan = await aPlan(service.ctx, app, { prices: [MONTHLY, YEARLY] })
      await seller.patch(`/api/v1/plans/plan_${plan.id}`, { status: 'archived' })
      await seller.patch(`/api/v1/plans/plan_${plan.id}/prices/price_${plan.prices[1]!.id}`, { status: 'archived' })
      const { status, body } = await seller.get(`/api/v1/plans/plan_${plan.id}`)
      expect(status).to.equal(200)
      expect(body.data).to.include({ id: `plan_${plan.id}`, status: 'archived' })
      expect(priceIds(body.data)).to.deep.equal([`price_${plan.prices[0]!.id}`])
    })

    it("answers 404 not_found for an unknown id, another app's plan, and anything that is not a plan id", async () => {
      const plan = await aPlan(service.ctx, app)
      const foreign = await aPlan(service.ctx, await anApp(service.ctx))
      const { id } = plan
      const ids = [
        `plan_${foreign.id}`,
        'plan_999999999',
        `${id}`,
        `plan_0${id}`,
        'plan_x',
        `PLAN_${id}`,
        `price_${id}`,
      ]
      ids.push(
        `plan_${id}%20`,
        `plan_${id}.0`,
        `plan_+${id}`,
        'plan_',
        'plan_-1',
        'plan_9007199254740993',
        `plan_${id}%00`,
      )
      for (const text of ids) {
        const answer = await seller.get(`/api/v1/plans/${text}`)
        expect(answer.status, text).to.equal(404)
        expect(answer.body.error.code, text).to.equal('not_found')
      }
    })
  })

  describe('PATCH /api/v1/plans/{id}', () => {
    it('changes name, description and status, and leaves absent fields unchanged', async () => {
      const plan = await aPlan(service.ctx, app, { prices: [MONTHLY, YEARLY] })
      const path = `/api/v1/plans/plan_${plan.id}` as const
      await seller.patch(`${path}/prices/price_${plan.prices[0]!.id}`, { status: 'archived' })
      service.ctx.clock.advance('1h')
      const renamed = await seller.patch(path, { name: 'Gold', description: 'Shiny' })
      expect(renamed.status).to.equal(200)
      expect(renamed.body.data).to.include({ code: plan.code, name: 'Gold', description: 'Shiny', status: 'active' })
      expect(renamed.body.data).to.include({ created_at: '2026-03-01 10:00:00', updated_at: '2026-03-01 11:00:00' })
      expect(priceIds(renamed.body.data), 'writes show archived prices too').to.deep.equal(
        plan.prices.map(({ id }) => `price_${id}`),
      )
      const archived = await seller.patch(path, { status: 'archived' })
      expect(archived.body.data).to.include({ name: 'Gold', description: 'Shiny', status: 'archived' })
      const cleared = await seller.patch(path, { description: null, status: 'active' })
      expect(cleared.body.data).to.include({ name: 'Gold', description: null, status: 'active' })
    })

    it('answers 400 invalid_request for an empty body and for fields that cannot be changed', async () => {
      const plan = await aPlan(service.ctx, app)
      const path = `/api/v1/plans/plan_${plan.id}` as const
      const empty = await seller.patch(path, {})
      expectFieldError(empty, null)
      expect(empty.body.error.message).to.contain('name, description, status')
      const cases: [field: string, body: object][] = [
        ['code', { code: 'other' }],
        ['prices', { name: 'A', prices: [MONTHLY] }],
        ['id', { id: 'plan_1' }],
        ['name', { name: null }],
        ['name', { name: '' }],
        ['name', { name: 'a'.repeat(192) }],
        ['description', { description: 'a'.repeat(5001) }],
        ['status', { status: 'deleted' }],
        ['status', { status: null }],
      ]
      for (const [field, body] of cases) expectFieldError(await seller.patch(path, body), field)
      expect((await seller.get(path)).body.data).to.include({ name: plan.name, status: 'active' })
    })

    it("answers 404 not_found for an unknown plan and for another app's, which stays unchanged", async () => {
      const other = await anApp(service.ctx)
      const foreign = await aPlan(service.ctx, other)
      for (const id of [`plan_${foreign.id}`, 'plan_999999999', String(foreign.id)]) {
        const answer = await seller.patch(`/api/v1/plans/${id}`, { name: 'Stolen' })
        expect(answer.status, id).to.equal(404)
        expect(answer.body.error.code, id).to.equal('not_found')
      }
      const read = await service.seller(other).get(`/api/v1/plans/plan_${foreign.id}`)
      expect(read.body.data.name).to.equal(foreign.name)
    })
  })

  describe('plans of identity-token apps', () => {
    it('can be read by their clients; every write answers 403 forbidden', async () => {
      const clients = await startIdentityClients()
      try {
        const client = await clients.app(service.ctx)
        const plan = await aPlan(service.ctx, client)
        const headers = await clients.headers(service.ctx, client, 'user-1')
        const path = `/api/v1/plans/plan_${plan.id}` as const
        for (const read of ['/api/v1/plans', path]) {
          expect((await service.call('GET', read, { headers })).status, read).to.equal(200)
        }
        const writes: [method: string, path: string, body: object][] = [
          ['POST', '/api/v1/plans', planWith(MONTHLY)],
          ['PATCH', path, { name: 'Mine' }],
          ['POST', `${path}/prices`, MONTHLY],
          ['PATCH', `${path}/prices/price_${plan.prices[0]!.id}`, { name: 'Mine' }],
          ['PATCH', path, {}],
        ]
        for (const [method, address, body] of writes) {
          const answer = await service.call(method, address, { headers, raw: JSON.stringify(body) })
          expect(answer.status, `${method} ${address}`).to.equal(403)
          expect(answer.body.error.code).to.equal('forbidden')
        }
        const read = await service.call('GET', path, { headers })
        expect(read.body.data).to.deep.include({ name: 'Premium' })
        expect(read.body.data.prices).to.have.length(1)
      } finally {
        await clients.stop()
      }
    })
  })

  describe('plan commands', () => {
    it('are written to the audit log with their caller: an operator or a server', async () => {
      const { ctx } = service
      const plan = await perform(
        ctx,
        operator('ann'),
        createPlan,
        { code: 'premium', name: 'Premium', prices: [MONTHLY] },
        { app: app.app },
      )
      await perform(ctx, operator('ann'), updatePlan, { name: 'Gold' }, { app: app.app, planId: plan.id })
      await seller.patch(`/api/v1/plans/plan_${plan.id}`, { name: 'Silver' })
      const [byApi, update, create, ...rest] = await listAuditEntries(ctx.db, { subject: `plan ${plan.id}`, limit: 10 })
      expect(rest).to.deep.equal([])
      expect(byApi).to.include({ actor: `server app ${app.app.id}`, action: 'plan.update' })
      expect(create).to.include({ actor: 'ann', action: 'plan.create', appId: app.app.id, beforeState: null })
      expect(create!.afterState).to.include({ id: `plan_${plan.id}`, code: 'premium', name: 'Premium' })
      expect(update).to.include({ actor: 'ann', action: 'plan.update' })
      expect(update!.beforeState).to.include({ name: 'Premium' })
      expect(update!.afterState).to.include({ name: 'Gold' })
    })
  })

  function planWith(price: object | null): Record<string, unknown> {
    return { code: 'a', name: 'A', prices: [price] }
  }

  function priceIds(plan: { prices: { id: string }[] }): string[] {
    return plan.prices.map(({ id }) => id)
  }
})
