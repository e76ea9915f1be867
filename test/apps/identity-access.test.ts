import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { startService, type TestService } from '../support/api.ts'
import { aCheckout, anApp, anOwnCustomer, aPlan, aSubscription, priceId, type TestApp } from '../support/factories.ts'
import { startIdentityClients, type IdentityClients } from '../support/identity-clients.ts'
import { setDisabled } from '../support/operators.ts'

/** R10: the end user is `sub`; what its client may and may not do. */
describe('identity-token apps', () => {
  let service: TestService
  let clients: IdentityClients
  let app: TestApp
  /** Ids for placeholders in paths. */
  let ids: Record<'plan' | 'price' | 'customer' | 'own' | 'others', string>

  beforeEach(async () => {
    service = await startService()
    clients = await startIdentityClients()
    const { ctx } = service
    app = await clients.app(ctx)
    const plan = await aPlan(ctx, app)
    await aSubscription(ctx, app, plan)
    const own = await aCheckout(ctx, app, { price_id: priceId(plan) })
    const others = await aCheckout(ctx, app, { external_ref: 'user-2', price_id: priceId(plan) })
    const customer = await anOwnCustomer(ctx, app, 'user-1')
    ids = {
      plan: `plan_${plan.id}`,
      price: priceId(plan),
      customer: `cus_${customer.id}`,
      own: String(own.transaction_id),
      others: String(others.transaction_id),
    }
  })
  afterEach(async () => {
    await service.stop()
    await clients.stop()
  })

  const call = async <Method extends string, Path extends string>(
    method: Method,
    path: Path,
    body?: object,
    sub = 'user-1',
  ) =>
    service.call(method, path, {
      headers: await clients.headers(service.ctx, app, sub),
      ...(body ? { raw: JSON.stringify(body) } : {}),
    })
  const urls = { success_url: 'https://shop.example/ok', cancel_url: 'https://shop.example/no' }
  const checkoutOf = (externalRef: string) => ({
    external_ref: externalRef,
    mode: 'subscription',
    price_id: ids.price,
    ...urls,
  })

  type Row = readonly [call: string, expected: number | string, body?: () => object]
  const rows: readonly Row[] = [
    ['GET /plans', 200],
    ['GET /plans/{plan}', 200],
    ['GET /subscriptions/user-1', 200],
    ['GET /transactions', 200],
    ['GET /transactions?external_ref=user-1', 200],
    ['GET /transactions/{own}', 200],
    ['POST /customers', 201, () => ({ name: 'Binh', email: 'binh@example.com' })],
    ['POST /checkout-sessions', 201, () => checkoutOf('user-1')],
    ['PUT /subscriptions/user-1/customer', 200, () => ({ customer_id: ids.customer })],

    ['POST /plans', 'forbidden', () => ({ code: 'x', name: 'X', prices: [] })],
    ['PATCH /plans/{plan}', 'forbidden', () => ({ name: 'X' })],
    ['POST /plans/{plan}/prices', 'forbidden', () => ({})],
    ['PATCH /plans/{plan}/prices/{price}', 'forbidden', () => ({ name: 'X' })],
    ['PUT /subscriptions/user-1/plan', 'forbidden', () => ({ price_id: ids.price })],
    ['GET /customers', 'forbidden'],
    ['GET /customers/{customer}', 'forbidden'],
    ['PATCH /customers/{customer}', 'forbidden', () => ({ name: 'X' })],
    ['GET /events', 'forbidden'],
    ['GET /events/evt_1', 'forbidden'],
    ['GET /test-clock', 'forbidden'],
    ['POST /test-clock', 'forbidden', () => ({ advance_seconds: 1 })],

    ['GET /subscriptions/user-2', 'forbidden'],
    ['GET /subscriptions/nobody', 'forbidden'],
    ['GET /subscriptions/USER-1', 'forbidden'],
    ['PUT /subscriptions/user-2/customer', 'forbidden', () => ({ customer_id: ids.customer })],
    ['POST /checkout-sessions', 'forbidden', () => checkoutOf('user-2')],
    ['GET /transactions?external_ref=user-2', 'forbidden'],
    ['GET /transactions?external_ref=user-1&external_ref=user-1', 'invalid_request'],
    ['GET /transactions/{others}', 'not_found'],
  ]
  for (const [what, expected, body] of rows) {
    const isAnothers = body?.toString().includes('user-2')
    const outcome = typeof expected === 'number' ? 'allowed' : expected
    it(`${what}${isAnothers ? ' for another end user' : ''}: ${outcome}`, async () => {
      const [method = '', template = ''] = what.split(' ')
      const path = template.replace(/\{(\w+)\}/g, (_, name: string) => ids[name as keyof typeof ids])
      const answer = await call(method, `/api/v1${path}`, body?.())
      if (typeof expected === 'number') expect(answer.status, answer.text).to.equal(expected)
      else expect(answer.body.error?.code, answer.text).to.equal(expected)
    })
  }

  it("lists the end user's own transactions only", async () => {
    const { body } = await call('GET', '/api/v1/transactions')
    const refs = body.data.map((transaction) => transaction.external_ref)
    expect(refs).to.deep.equal(['user-1', 'user-1'])
    const stranger = await call('GET', '/api/v1/transactions', undefined, 'user-3')
    expect(stranger.body.data).to.deep.equal([])
  })

  it('keeps the Idempotency-Keys of end users separate: one cannot read or affect the answer of another', async () => {
    const headers = async (sub: string) => ({
      ...(await clients.headers(service.ctx, app, sub)),
      'Idempotency-Key': 'once',
    })
    const post = async (sub: string) =>
      service.call('POST', '/api/v1/customers', {
        headers: await headers(sub),
        raw: JSON.stringify({ name: 'Binh', email: 'binh@example.com' }),
      })
    const first = await post('user-1')
    expect((await post('user-1')).text).to.equal(first.text)
    const second = await post('user-2')
    expect(second.status, second.text).to.equal(201)
    expect(second.body.data.id).not.to.equal(first.body.data.id)
    expect((await post('user-2')).text).to.equal(second.text)
    expect((await post('user-1')).text).to.equal(first.text)
    // Subjects are arbitrary texts: none may be mistaken for a path and another subject.
    expect((await post('/api/v1/customers')).body.data.id).not.to.equal(first.body.data.id)
    expect((await post('\nuser-1')).body.data.id).not.to.equal(first.body.data.id)
  })

  it('answers carry CORS headers for any origin, without credentials; errors too', async () => {
    for (const answer of [
      await call('GET', '/api/v1/plans'),
      await call('GET', '/api/v1/events'),
      await service.call('GET', '/api/v1/plans'),
    ]) {
      expect(answer.headers['access-control-allow-origin']).to.equal('*')
      expect(answer.headers).not.to.have.property('access-control-allow-credentials')
    }
  })

  it('a preflight is answered without a token and allows the required headers', async () => {
    const answer = await service.call('OPTIONS', '/api/v1/checkout-sessions', {
      headers: {
        Origin: 'https://reader.example',
        'Access-Control-Request-Method': 'POST',
        'Access-Control-Request-Headers': 'authorization,content-type,x-app-key',
      },
    })
    expect(answer.status).to.equal(204)
    expect(answer.headers['access-control-allow-origin']).to.equal('*')
    expect(String(answer.headers['access-control-allow-headers']).toLowerCase()).to.contain('authorization')
    expect(String(answer.headers['access-control-allow-headers']).toLowerCase()).to.contain('x-app-key')
  })

  it('a disabled app answers app_disabled to a valid token, unauthorized to an invalid one', async () => {
    await setDisabled(service.ctx, 'tester', app.app, true)
    expect((await call('GET', '/api/v1/plans')).body.error.code).to.equal('app_disabled')
    const headers = { 'X-App-Key': app.apiKey, Authorization: 'Bearer a.b.c' }
    expect((await service.call('GET', '/api/v1/plans', { headers })).body.error.code).to.equal('unauthorized')
  })

  it('an identity token is not accepted for an HMAC app', async () => {
    const hmac = await anApp(service.ctx)
    const headers = { ...(await clients.headers(service.ctx, app, 'user-1')), 'X-App-Key': hmac.apiKey }
    expect((await service.call('GET', '/api/v1/plans', { headers })).status).to.equal(401)
  })
})
