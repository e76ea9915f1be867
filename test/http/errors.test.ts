import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import sinon from 'sinon'
import { signRequest } from '#apps/call-signature.ts'
import { ERROR_STATUS } from '#shared/errors.ts'
import { unixSeconds } from '#shared/time.ts'
import { startService, type Response, type SellerClient, type TestService } from '../support/api.ts'
import { expectFieldError, expectError } from '../support/expect-error.ts'
import { anApp, aPlan, aSubscription, type TestApp } from '../support/factories.ts'
import { head, sendRaw } from '../support/raw-http.ts'

let service: TestService
let app: TestApp
let seller: SellerClient
describe('the API in case of errors', () => {
  beforeEach(async () => {
    service = await startService()
    app = await anApp(service.ctx)
    seller = service.seller(app)
  })

  afterEach(async () => {
    sinon.restore()
    await service.stop()
  })

  describe('errors of the API', () => {
    it('have one status for each code', () => {
      expect(ERROR_STATUS).to.deep.equal({
        invalid_request: 400,
        price_not_found: 400,
        payment_method_unavailable: 400,
        promotion_not_valid: 400,
        unauthorized: 401,
        forbidden: 403,
        app_disabled: 403,
        not_found: 404,
        method_not_allowed: 405,
        plan_code_taken: 409,
        promotion_code_taken: 409,
        already_lifetime: 409,
        idempotency_conflict: 409,
        checkout_expired: 410,
        payload_too_large: 413,
        rate_limited: 429,
        internal_error: 500,
        provider_error: 502,
        service_unavailable: 503,
      })
    })

    it('have one shape: success false, and code, message, field and request_id', async () => {
      const answers: [code: string, field: string | null, answer: Response][] = [
        ['invalid_request', 'name', await seller.post('/api/v1/customers', { email: 'an@example.com' })],
        ['not_found', null, await seller.get('/api/v1/plans/plan_1')],
        ['not_found', null, await service.call('GET', '/nowhere')],
        ['unauthorized', null, await service.call('GET', '/api/v1/plans')],
        ['method_not_allowed', null, await service.call('DELETE', '/api/v1/plans')],
      ]
      for (const [code, field, { status, headers, body }] of answers) {
        const { message, request_id } = body.error
        expect(body).to.deep.equal({ success: false, error: { code, message, field, request_id } })
        expect(status).to.equal(ERROR_STATUS[code as keyof typeof ERROR_STATUS])
        expect(message).to.be.a('string').and.not.equal('')
        expect(headers['x-request-id']).to.equal(request_id)
        expect(headers['content-type']).to.match(/^application\/json/)
      }
    })

    it('are checked in one order: unknown path, method, signature, access, then the body', async () => {
      expectError(await service.call('POST', '/api/v1/nowhere', { raw: '{' }), 404, 'not_found')
      expectError(await service.call('PUT', '/api/v1/plans', { raw: '{' }), 405, 'method_not_allowed')
      expectError(await service.call('POST', '/api/v1/plans', { raw: '{' }), 401, 'unauthorized')
      expectError(await seller.post('/api/v1/plans', null, { raw: '{' }), 400, 'invalid_request')
    })

    it('are internal_error without any detail if the service itself failed', async () => {
      sinon.stub(service.ctx.db, 'all').rejects(new Error('ER_CANARY: SELECT secret FROM plans'))
      const answer = await seller.get('/api/v1/plans')
      expectError(answer, 500, 'internal_error')
      expect(answer.text).to.not.match(/CANARY|SELECT|plans/)
      const { request_id } = answer.body.error
      expect(answer.headers['x-request-id']).to.equal(request_id)
      const line = service.ctx.logged.find((text) => text.includes(request_id) && text.includes('ER_CANARY'))
      expect(line, 'operators find it by the request id').to.be.a('string')
    })
  })

  describe('paths and methods', () => {
    it('that are unknown answer 404 not_found, with or without a signature', async () => {
      const paths = [
        '/api/v1',
        '/api/v1/',
        '/api/v2/plans',
        '/api/v1/plan',
        '/api/v1/plans/plan_1/prices/price_1/x',
        '/plans',
      ]
      paths.push(
        '/API/V1/plans',
        '/api/v1/Plans',
        '/api/v1/plans/',
        '/api/v1//plans',
        '/api/v1/plans%2f',
        '/api/v1/plans;x=1',
      )
      for (const path of paths) expectError(await seller.get(path), 404, 'not_found')
      for (const line of ['GET //api/v1/plans', 'GET /../api/v1/plans', 'GET /./api/v1/plans', 'OPTIONS *']) {
        expectError(await sendRaw(service.url, head(line, [])), 404, 'not_found')
      }
    })

    it('that do not match answer 405 method_not_allowed with Allow', async () => {
      const cases: [method: string, path: string, allow: string][] = [
        ['PUT', '/api/v1/plans', 'GET, HEAD, POST'],
        ['DELETE', '/api/v1/plans/plan_1', 'GET, HEAD, PATCH'],
        ['GET', '/api/v1/plans/plan_1/prices', 'POST'],
        ['PUT', '/api/v1/plans/plan_1/prices/price_1', 'PATCH'],
        ['DELETE', '/api/v1/customers/cus_1', 'GET, HEAD, PATCH'],
        ['GET', '/api/v1/checkout-sessions', 'POST'],
        ['POST', '/api/v1/subscriptions/user-1', 'GET, HEAD'],
        ['GET', '/api/v1/subscriptions/user-1/plan', 'PUT'],
        ['PATCH', '/api/v1/subscriptions/user-1/customer', 'PUT'],
        ['POST', '/api/v1/transactions', 'GET, HEAD'],
        ['POST', '/api/v1/events/evt_1', 'GET, HEAD'],
        ['POST', '/healthz', 'GET, HEAD'],
      ]
      for (const [method, path, allow] of cases) {
        const answer = await service.call(method, path)
        expectError(answer, 405, 'method_not_allowed')
        expect(answer.headers['allow'], path).to.equal(allow)
      }
    })

    it('that contain ids accept them percent-encoded', async () => {
      const externalRef = 'user/1 %é?#&+=;.'
      await aSubscription(service.ctx, app, await aPlan(service.ctx, app), { external_ref: externalRef })
      const answer = await seller.get(`/api/v1/subscriptions/${encodeURIComponent(externalRef)}`)
      expect(answer.status).to.equal(200)
      expectError(await seller.get('/api/v1/subscriptions/user'), 404, 'not_found')
      for (const broken of ['%', '%ff', '%zz', '%c3%28', '%00', 'a'.repeat(8000)]) {
        expectError(await seller.get(`/api/v1/subscriptions/${broken}`), 404, 'not_found')
      }
    })

    it('of reads also answer HEAD, without a body', async () => {
      const path = `/api/v1/plans/plan_${(await aPlan(service.ctx, app)).id}`
      const { text } = await seller.get(path)
      const timestamp = String(unixSeconds(service.ctx.clock.now()))
      const signature = signRequest(app.secret, timestamp, { method: 'HEAD', target: path, body: Buffer.alloc(0) })
      const headers = { 'X-App-Key': app.apiKey, 'X-Timestamp': timestamp, 'X-Signature': signature }
      const answer = await service.call('HEAD', path, { headers })
      expect(answer).to.include({ status: 200, text: '' })
      expect(answer.headers['content-length']).to.equal(String(Buffer.byteLength(text)))
      expect(await service.call('HEAD', path)).to.include({ status: 401, text: '' })
    })
  })

  describe('bodies', () => {
    it('that are not JSON, or not in UTF-8, answer 400 invalid_request', async () => {
      const raws = [
        '',
        '{',
        '{"name":"An",}',
        "{'name':'An'}",
        '{name:"An"}',
        '\u0000',
        'null null',
        '{"name":"\t"}',
        '{"a":01}',
        'undefined',
        'NaN',
      ]
      raws.push('{"name":"An"}x', '/**/{}', '{"name":"\\x41"}', '[1,]')
      const bytes = [
        Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d]),
        Buffer.from('{"name":"An"}', 'utf16le'),
        Buffer.from('{"name":"\xe9"}', 'latin1'),
      ]
      for (const raw of [...raws, ...bytes]) {
        const answer = await seller.post('/api/v1/customers', null, {
          raw,
          headers: { 'Content-Type': 'application/json' },
        })
        expectFieldError(answer, null)
      }
    })

    it('that are not objects answer 400 invalid_request', async () => {
      for (const raw of ['[]', 'null', '"x"', '1', 'true', '[{"name":"An","email":"an@example.com"}]']) {
        expectFieldError(await seller.post('/api/v1/customers', null, { raw }), null)
        expectFieldError(await seller.post('/api/v1/checkout-sessions', null, { raw }), null)
      }
    })

    it('of another content type answer 400 invalid_request', async () => {
      const raw = '{"name":"An","email":"an@example.com"}'
      const types = [
        'text/plain',
        'application/x-www-form-urlencoded',
        'multipart/form-data; boundary=x',
        'application/jsonp',
        'json',
        '',
        'text/json',
        'application/json; charset=iso-8859-1',
        'application/json; version=1; charset="utf-16"',
      ]
      for (const type of types) {
        const answer = await seller.post('/api/v1/customers', null, { raw, headers: { 'Content-Type': type } })
        expectFieldError(answer, null)
        expect(answer.body.error.message).to.contain('application/json')
      }
      const good = ['; charset=utf-8', ';charset=UTF-8', '; charset="utf-8"', '; version=1', ';']
      for (const type of ['Application/JSON', ...good.map((parameters) => `application/json${parameters}`)]) {
        const answer = await seller.post('/api/v1/customers', null, { raw, headers: { 'Content-Type': type } })
        expect(answer.status, type).to.equal(201)
      }
    })

    it('of 100 KB plus one byte answer 413 payload_too_large', async () => {
      const answer = await seller.post('/api/v1/customers', null, { raw: Buffer.alloc(100 * 1024 + 1, 32) })
      expectError(answer, 413, 'payload_too_large')
    })

    it('that come with a GET are 400 invalid_request, signed or not', async () => {
      const target = '/api/v1/plans'
      expectError(await seller.get(target, { raw: '{"x":' }), 400, 'invalid_request')
      expectError(await service.call('GET', target, { raw: '{}' }), 400, 'invalid_request')
    })
  })

  describe('every answer', () => {
    it('has its own X-Request-Id, no-store and nosniff', async () => {
      const answers = await Promise.all([
        seller.get('/api/v1/plans'),
        seller.post('/api/v1/customers', { name: 'An', email: 'an@example.com' }),
        seller.get('/api/v1/plans/x'),
        service.call('GET', '/nowhere'),
        service.call('GET', '/healthz'),
        service.call('GET', '/api/v1/plans', { headers: { 'X-Request-Id': 'mine' } }),
      ])
      const ids = answers.map(({ headers }) => headers['x-request-id'])
      expect(new Set(ids)).to.have.property('size', answers.length)
      for (const { headers } of answers) {
        expect(headers['x-request-id']).to.match(/^req_[0-9a-f]{32}$/)
        expect(headers).to.include({ 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' })
        expect(headers).to.not.have.property('x-powered-by')
        expect(headers).to.not.have.property('set-cookie')
      }
    })

    it('of the API, errors included, can be read by browser clients of any origin, without credentials', async () => {
      const answers = await Promise.all([
        seller.get('/api/v1/plans'),
        seller.get('/api/v1/plans/x'),
        service.call('GET', '/api/v1/plans'),
        service.call('GET', '/api/v1/nowhere'),
      ])
      for (const { headers } of answers) {
        expect(headers['access-control-allow-origin']).to.equal('*')
        expect(headers).to.not.have.property('access-control-allow-credentials')
      }
      const preflight = await service.call('OPTIONS', '/api/v1/checkout-sessions', {
        headers: { Origin: 'https://shop.example', 'Access-Control-Request-Method': 'POST' },
      })
      expect(preflight).to.include({ status: 204, text: '' })
      expect(preflight.headers['access-control-allow-origin']).to.equal('*')
      expect(preflight.headers['access-control-allow-methods']).to.contain('POST')
      for (const name of ['Authorization', 'Content-Type', 'X-App-Key', 'Idempotency-Key']) {
        expect(preflight.headers['access-control-allow-headers']).to.contain(name)
      }
    })
  })
})
