import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { API_ROUTES } from '#daemon/app.ts'
import { startService, type Response, type SellerClient, type TestService } from '../support/api.ts'
import { expectError, expectFieldError } from '../support/expect-error.ts'
import { aCheckout, aCustomer, anApp, aPlan, priceId, tokenOf } from '../support/factories.ts'
import { startIdentityClients } from '../support/identity-clients.ts'

describe('an unknown or repeated query parameter', () => {
  let service: TestService
  let seller: SellerClient
  let checkout: string

  beforeEach(async () => {
    service = await startService()
    const app = await anApp(service.ctx)
    seller = service.seller(app)
    const plan = await aPlan(service.ctx, app)
    checkout = tokenOf(await aCheckout(service.ctx, app, { price_id: priceId(plan) }))
    await aCustomer(service.ctx, app, { email: 'binh@example.com' })
  })

  afterEach(() => service.stop())

  const send = (method: string, path: string): Promise<Response> => {
    if (method === 'GET') return seller.get(path)
    return seller[method.toLowerCase() as 'post' | 'put' | 'patch'](path, {})
  }
  const pathOf = (path: string): string => path.replace(/:\w+/g, '1')

  it('is 400 on every call of the API, and named', async () => {
    for (const { method, path } of API_ROUTES) {
      for (const name of ['surprise', 'toString', '__proto__']) {
        const answer = await send(method, `${pathOf(path)}?${name}=1`)
        expectFieldError(answer, name)
        expect(answer.body.error.message).to.equal(`${name}: is not a query parameter of this call`)
      }
    }
  })

  it('beside known ones is the one that is named, and nobody else is listed: GET /api/v1/customers?mail=…', async () => {
    expectFieldError(await seller.get('/api/v1/customers?mail=an@example.com'), 'mail')
    expectFieldError(await seller.get('/api/v1/customers?limit=5&Email=an@example.com'), 'Email')
    expectFieldError(await seller.get('/api/v1/customers?limit=5&email[]=x'), 'email[]')
    expect((await seller.get('/api/v1/customers?limit=5&email=an@example.com')).body.data).to.deep.equal([])
  })

  it('stops a change, and the corrected call may use the same Idempotency-Key', async () => {
    const [body, key] = [{ name: 'An', email: 'an@example.com' }, { headers: { 'Idempotency-Key': 'k1' } }]
    expectFieldError(await seller.post('/api/v1/customers?dry_run=true', body, key), 'dry_run')
    expect((await seller.get('/api/v1/customers?email=an@example.com')).body.data).to.deep.equal([])
    expect((await seller.post('/api/v1/customers', body, key)).status).to.equal(201)
  })

  it('that is repeated is 400 and named, also if both values are the same', async () => {
    for (const query of ['limit=5&limit=5', 'email=an@example.com&limit=5&email=bo@example.com']) {
      const { body, status } = await seller.get(`/api/v1/customers?${query}`)
      const name = query.slice(0, query.indexOf('='))
      expect([status, body.error.message]).to.deep.equal([400, `${name}: is repeated`])
    }
  })

  it('is 401 first where the call is not signed', async () => {
    expectError(await service.call('GET', '/api/v1/customers?mail=x'), 401, 'unauthorized')
  })

  it("of an end user's client is 400 as well", async () => {
    const clients = await startIdentityClients()
    try {
      const headers = await clients.headers(service.ctx, await clients.app(service.ctx), 'user-1')
      expectFieldError(await service.call('GET', '/api/v1/plans?state=active', { headers }), 'state')
    } finally {
      await clients.stop()
    }
  })

  it('is ignored by hosted pages, which come from links in mails', async () => {
    expect((await service.call('GET', `/checkout/${checkout}?utm_source=mail`)).status).to.equal(200)
    expect((await service.call('GET', `/checkout/${checkout}/status?utm_source=mail`)).status).to.equal(200)
  })
})
