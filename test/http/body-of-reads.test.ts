import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { signRequest } from '#apps/call-signature.ts'
import { unixSeconds } from '#shared/time.ts'
import { startService, type TestService } from '../support/api.ts'
import { expectError } from '../support/expect-error.ts'
import { aCheckout, anApp, aPlan, aSubscription, priceId, tokenOf, type TestApp } from '../support/factories.ts'
import { head, sendRaw } from '../support/raw-http.ts'

type Header = readonly [name: string, value: string]

/** R7: the signed text does not mark where the path ends, so only a read without a body is unambiguous. */
describe('a GET or HEAD with a body', () => {
  let service: TestService
  let app: TestApp
  let checkout: string

  beforeEach(async () => {
    service = await startService()
    app = await anApp(service.ctx)
    const plan = await aPlan(service.ctx, app)
    await aSubscription(service.ctx, app, plan, { external_ref: 'victim' })
    checkout = tokenOf(await aCheckout(service.ctx, app, { external_ref: 'victim', price_id: priceId(plan) }))
  })

  afterEach(() => service.stop())

  const signed = (method: string, target: string): Header[] => {
    const timestamp = String(unixSeconds(service.ctx.clock.now()))
    const signature = signRequest(app.secret, timestamp, { method, target, body: Buffer.alloc(0) })
    return [
      ['X-App-Key', app.apiKey],
      ['X-Timestamp', timestamp],
      ['X-Signature', signature],
    ]
  }
  const LENGTH: Header = ['Content-Length', '2']
  const CHUNKED: Header = ['Transfer-Encoding', 'chunked']

  for (const method of ['GET', 'HEAD']) {
    it(`is 400 if the signature of ${method} …/victim.x is sent with …/victim and the body "x."`, async () => {
      const headers = signed(method, '/api/v1/subscriptions/victim.x')
      const target = `${method} /api/v1/subscriptions/victim`
      const answers = [
        await sendRaw(service.url, head(target, [...headers, LENGTH]), 'x.'),
        await sendRaw(service.url, head(target, [...headers, CHUNKED]), '2\r\nx.\r\n0\r\n\r\n'),
      ]
      for (const answer of answers) {
        expect(answer.status, answer.text).to.equal(400)
        if (method === 'GET') expectError(answer, 400, 'invalid_request')
      }
    })
  }

  it('is 400 invalid_request on every path, including pages, before any query', async () => {
    const paths = [
      '/api/v1/plans',
      '/api/v1/webhooks/card-provider',
      `/checkout/${checkout}`,
      `/checkout/${checkout}/status`,
      `/checkout/${checkout}/bank`,
      `/renew/${'0'.repeat(64)}`,
      '/assets/style.css',
      '/healthz',
      '/nowhere',
    ]
    for (const path of paths) {
      expectError(await sendRaw(service.url, head(`GET ${path}`, [LENGTH]), '{}'), 400, 'invalid_request')
      const chunked = await sendRaw(service.url, head(`GET ${path}`, [CHUNKED]), '2\r\n{}\r\n0\r\n\r\n')
      expectError(chunked, 400, 'invalid_request')
    }
  })

  it('is answered before its body arrives', async () => {
    const answer = await sendRaw(service.url, head('GET /api/v1/plans', [['Content-Length', '99999999']]))
    expectError(answer, 400, 'invalid_request')
    const chunked = await sendRaw(service.url, head('GET /api/v1/plans', [CHUNKED]))
    expectError(chunked, 400, 'invalid_request')
  })

  it('is allowed if it says Content-Length: 0', async () => {
    const target = '/api/v1/subscriptions/victim'
    const zero: Header = ['Content-Length', '0']
    expect((await sendRaw(service.url, head(`GET ${target}`, [...signed('GET', target), zero]))).status).to.equal(200)
    expect((await sendRaw(service.url, head(`HEAD ${target}`, [...signed('HEAD', target), zero]))).status).to.equal(200)
    expect((await sendRaw(service.url, head(`GET /checkout/${checkout}`, [zero]))).status).to.equal(200)
  })
})
