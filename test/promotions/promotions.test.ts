import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { listAuditEntries } from '#commands/store.ts'
import { startService, type SellerClient, type TestService } from '../support/api.ts'
import { expectError, expectFieldError } from '../support/expect-error.ts'
import { anApp, aPlan, aPromotion, paid, priceId, type TestApp } from '../support/factories.ts'
import { startIdentityClients } from '../support/identity-clients.ts'

let service: TestService
let app: TestApp
let seller: SellerClient
describe('promotions', () => {
  beforeEach(async () => {
    service = await startService()
    app = await anApp(service.ctx)
    seller = service.seller(app)
  })

  afterEach(() => service.stop())

  const create = (body: object) => seller.post('/api/v1/promotions', body)

  describe('POST /api/v1/promotions', () => {
    it('answers 201 with the promotion, its code in upper case', async () => {
      await aPlan(service.ctx, app, { code: 'premium' })
      const answer = await create({
        code: 'Tet_2027-a',
        percent: 20,
        plan_codes: ['premium'],
        every_period: true,
        valid_until: '2027-02-28 16:59:59',
        max_uses: 500,
        once_per_user: false,
        on_page: true,
      })
      expect(answer.status, answer.text).to.equal(201)
      const { id } = answer.body.data
      expect(id).to.match(/^promo_[1-9]\d*$/)
      expect(answer.body).to.deep.equal({
        success: true,
        data: {
          id,
          code: 'TET_2027-A',
          percent: 20,
          amount: null,
          currency: null,
          plan_codes: ['premium'],
          every_period: true,
          valid_until: '2027-02-28 16:59:59',
          max_uses: 500,
          once_per_user: false,
          on_page: true,
          status: 'active',
          uses: 0,
          created_at: '2026-03-01 10:00:00',
        },
      })
    })

    it('takes an amount with its currency instead, and has defaults for the rest', async () => {
      const answer = await create({ code: 'WELCOME', amount: 30_000, currency: 'vnd' })
      expect(answer.body.data).to.include({ percent: null, amount: 30_000, currency: 'VND', plan_codes: null })
      expect(answer.body.data).to.include({ every_period: false, once_per_user: true, on_page: false })
      expect(answer.body.data).to.include({ valid_until: null, max_uses: null })
    })

    it('refuses a code that the app has, in any case: promotion_code_taken', async () => {
      await create({ code: 'TET', percent: 20 })
      const again = await create({ code: 'tet', percent: 30 })
      expectError(again, 409, 'promotion_code_taken')
      expect(again.body.error.field).to.equal('code')
      const other = await anApp(service.ctx)
      expect((await service.seller(other).post('/api/v1/promotions', { code: 'TET', percent: 20 })).status).to.equal(
        201,
      )
    })

    it('refuses all but exactly one of percent, and amount with currency', async () => {
      expectFieldError(await create({ code: 'TET' }), 'percent')
      expectFieldError(await create({ code: 'TET', currency: 'VND' }), 'percent')
      expectFieldError(await create({ code: 'TET', percent: 10, amount: 1, currency: 'VND' }), 'amount')
      expectFieldError(await create({ code: 'TET', amount: 1 }), 'currency')
      expectFieldError(await create({ code: 'TET', percent: 10, currency: 'VND' }), 'currency')
    })

    it('names the field that is out of bounds', async () => {
      const cases: readonly [field: string, body: object][] = [
        ['code', { code: 'ab' }],
        ['code', { code: 'a'.repeat(41) }],
        ['code', { code: 'TẾT' }],
        ['code', { code: 'A B' }],
        ['percent', { percent: 0 }],
        ['percent', { percent: 101 }],
        ['percent', { percent: 12.5 }],
        ['percent', { percent: '20' }],
        ['max_uses', { max_uses: 0 }],
        ['valid_until', { valid_until: '2027-02-30 00:00:00' }],
        ['valid_until', { valid_until: '2027-02-28T00:00:00Z' }],
        ['plan_codes', { plan_codes: [] }],
        ['plan_codes.0', { plan_codes: ['nowhere'] }],
        ['plan_codes.1', { plan_codes: ['pro', 'pro'] }],
        ['on_page', { on_page: 'yes' }],
        ['starts_at', { starts_at: '2027-02-28 00:00:00' }],
      ]
      for (const [field, body] of cases) expectFieldError(await create({ code: 'TET', percent: 20, ...body }), field)
    })
  })

  it('GET /api/v1/promotions lists them in pages, newest first, with their uses', async () => {
    const plan = await aPlan(service.ctx, app)
    for (const code of ['ONE', 'TWO', 'THREE']) await aPromotion(service.ctx, app, { code })
    await aPromotion(service.ctx, await anApp(service.ctx))
    await paid(service.ctx, app, { price_id: priceId(plan), promotion_code: 'two' })
    const first = await seller.get('/api/v1/promotions?limit=2')
    const codes = (answer: typeof first) =>
      answer.body.data.map(({ code, uses }: { code: string; uses: number }) => [code, uses])
    expect(codes(first)).to.deep.equal([
      ['THREE', 0],
      ['TWO', 1],
    ])
    const second = await seller.get(`/api/v1/promotions?limit=2&cursor=${first.body.next_cursor}`)
    expect(codes(second)).to.deep.equal([['ONE', 0]])
    expect(second.body.next_cursor).to.equal(null)
    expectFieldError(await seller.get('/api/v1/promotions?status=active'), 'status')
  })

  it("GET /api/v1/promotions/{id} shows the app's own, and 404 for any other", async () => {
    const { id } = await aPromotion(service.ctx, app)
    expect((await seller.get(`/api/v1/promotions/promo_${id}`)).body.data).to.include({ code: 'TET', percent: 20 })
    const other = await aPromotion(service.ctx, await anApp(service.ctx))
    for (const text of [`promo_${other.id}`, String(id), `promo_0${id}`, 'promo_x'])
      expectError(await seller.get(`/api/v1/promotions/${text}`), 404, 'not_found')
  })

  describe('PATCH /api/v1/promotions/{id}', () => {
    it('changes status, end and number of uses; null lifts the last two', async () => {
      const { id } = await aPromotion(service.ctx, app, { max_uses: 5, valid_until: '2027-01-01 00:00:00' })
      const patch = (body: object) => seller.patch(`/api/v1/promotions/promo_${id}`, body)
      const changed = await patch({ status: 'archived', max_uses: 7, valid_until: '2027-02-01 00:00:00' })
      expect(changed.body.data).to.include({ status: 'archived', max_uses: 7, valid_until: '2027-02-01 00:00:00' })
      const lifted = await patch({ status: 'active', max_uses: null, valid_until: null })
      expect(lifted.body.data).to.include({ status: 'active', max_uses: null, valid_until: null, percent: 20 })
      const audited = await listAuditEntries(service.ctx.db, { limit: 10, appId: app.app.id })
      expect(audited.filter(({ action }) => action === 'promotion.update')).to.have.length(2)
    })

    it('never changes the code or what is taken off', async () => {
      const { id } = await aPromotion(service.ctx, app)
      const patch = (body: object) => seller.patch(`/api/v1/promotions/promo_${id}`, body)
      for (const field of ['code', 'percent', 'amount', 'every_period', 'plan_codes'])
        expectFieldError(await patch({ [field]: null }), field)
      expectFieldError(await patch({}), null)
      expectFieldError(await patch({ status: 'over' }), 'status')
      expectError(await seller.patch('/api/v1/promotions/promo_999', { status: 'archived' }), 404, 'not_found')
    })
  })

  it("is for sellers' servers alone: 403 for the clients of end users", async () => {
    const clients = await startIdentityClients()
    const headers = await clients.headers(service.ctx, await clients.app(service.ctx), 'user-1')
    const raw = JSON.stringify({ code: 'FREE', percent: 100 })
    expectError(await service.call('GET', '/api/v1/promotions', { headers }), 403, 'forbidden')
    expectError(await service.call('POST', '/api/v1/promotions', { raw, headers }), 403, 'forbidden')
    await clients.stop()
  })
})
