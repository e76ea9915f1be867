import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { startService, type SellerClient, type TestService } from '../support/api.ts'
import { anApp, aPlan, aSubscription, LIFETIME, MONTHLY, priceId, type TestApp } from '../support/factories.ts'

const PATH = '/api/v1/test-clock'

let service: TestService
let app: TestApp
let seller: SellerClient
describe('the API of the test clock', () => {
  beforeEach(async () => {
    service = await startService()
    app = await anApp(service.ctx)
    seller = service.seller(app)
  })

  afterEach(() => service.stop())

  describe('GET /api/v1/test-clock', () => {
    it("returns the app's own time, which is real time until it is moved, and keeps running from there", async () => {
      expect((await seller.get(PATH)).body).to.deep.equal({ success: true, data: { now: '2026-03-01 10:00:00' } })
      await seller.post(PATH, { advance_seconds: 86_400 })
      service.ctx.clock.advance('5s')
      expect((await seller.get(PATH)).body.data.now).to.equal('2026-03-02 10:00:05')
    })
  })

  describe('POST /api/v1/test-clock', () => {
    it('returns the new time; it moves subscriptions and checkouts, but not request signatures', async () => {
      const plan = await aPlan(service.ctx, app, { prices: [MONTHLY, LIFETIME] })
      await aSubscription(service.ctx, app, plan)
      const checkout = {
        external_ref: 'user-2',
        mode: 'subscription',
        price_id: priceId(plan),
        success_url: 'https://shop.example/ok',
        cancel_url: 'https://shop.example/no',
      }
      const before = (await seller.post('/api/v1/checkout-sessions', checkout)).body.data
      const moved = await seller.post(PATH, { now: '2026-04-01 09:59:59' })
      expect(moved.status).to.equal(200)
      expect(moved.body).to.deep.equal({ success: true, data: { now: '2026-04-01 09:59:59' } })
      expect((await seller.get('/api/v1/subscriptions/user-1')).body.data.status).to.equal('active')
      await seller.post(PATH, { advance_seconds: 1 })
      expect((await seller.get('/api/v1/subscriptions/user-1')).body.data.status).to.equal('expired')
      expect((await service.call('GET', before.checkout_url)).status).to.equal(410)
      const after = (await seller.post('/api/v1/checkout-sessions', checkout)).body.data
      expect(after.expires_at).to.equal('2026-04-01 11:00:00')
      const { created_at } = (await seller.get(`/api/v1/transactions/${after.transaction_id}`)).body.data
      expect(created_at).to.equal('2026-04-01 10:00:00')
    })
  })
})
