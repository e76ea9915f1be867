import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { signRequest } from '#apps/call-signature.ts'
import { unixSeconds } from '#shared/time.ts'
import { startService, type TestService } from '../support/api.ts'
import { anApp, type TestApp } from '../support/factories.ts'

const ONE_MESSAGE = 'the key, signature, timestamp or token is missing or wrong'
const BODY = '{"name":"Án"}'

describe('a refusal of unauthorized calls', () => {
  let service: TestService
  let app: TestApp
  let headers: Record<string, string>

  beforeEach(async () => {
    service = await startService()
    app = await anApp(service.ctx)
    headers = headersOf(app)
  })

  afterEach(() => service.stop())

  const headersOf = ({ apiKey, secret }: TestApp, seconds = unixSeconds(service.ctx.clock.now())) => ({
    'Content-Type': 'application/json',
    'X-App-Key': apiKey,
    'X-Timestamp': String(seconds),
    'X-Signature': signRequest(secret, String(seconds), {
      method: 'POST',
      target: '/api/v1/customers?a=1',
      body: Buffer.from(BODY),
    }),
  })

  async function refusal(changes: Record<string, string> = {}, raw = BODY): Promise<string> {
    const { status, body } = await service.call('POST', '/api/v1/customers?a=1', {
      headers: { ...headers, ...changes },
      raw,
    })
    expect(status).to.equal(401)
    expect(body.error.code).to.equal('unauthorized')
    return body.error.message
  }

  it('of a sandbox key says that no app has the key, whatever the rest is', async () => {
    for (const key of ['pk_test_x', `pk_test_${'0'.repeat(24)}`])
      expect(await refusal({ 'X-App-Key': key })).to.equal('X-App-Key: no app has this key')
  })

  it('of a sandbox app says how far off the timestamp is, and in which direction', async () => {
    const now = unixSeconds(service.ctx.clock.now())
    expect(await refusal({ 'X-Timestamp': '' })).to.equal('X-Timestamp: is missing')
    expect(await refusal({ 'X-Timestamp': `${now}.5` })).to.equal('X-Timestamp: must be Unix seconds, in digits alone')
    expect(await refusal({ 'X-Timestamp': String(now - 412) })).to.equal(
      'X-Timestamp: is 412 s behind our clock; at most 300 s are allowed',
    )
    expect(await refusal({ 'X-Timestamp': String(now + 301) })).to.equal(
      'X-Timestamp: is 301 s ahead of our clock; at most 300 s are allowed',
    )
  })

  it('of a sandbox app shows the text that had to be signed, and never a secret', async () => {
    const { 'X-Timestamp': timestamp = '' } = headers
    expect(await refusal({ 'X-Signature': '' })).to.equal('X-Signature: is missing')
    expect(await refusal({ 'X-Signature': 'AB' })).to.equal('X-Signature: must be 64 hex digits in lower case')
    const text = `${timestamp}.POST./api/v1/customers?a=1.${BODY}`
    const message = await refusal({ 'X-Signature': 'a'.repeat(64) })
    expect(message).to.equal(
      `X-Signature: is not the HMAC-SHA256 of these ${Buffer.byteLength(text)} bytes, keyed with the api_secret: ${JSON.stringify(text)}`,
    )
    expect(message).not.to.include(app.secret)
    expect(await refusal({}, `${BODY}${' '.repeat(5000)}`)).to.have.length.below(700)
  })

  it('of a live app is the same message for every error', async () => {
    headers = headersOf(await anApp(service.ctx, { sandbox: false }))
    const changes = [
      { 'X-Signature': 'a'.repeat(64) },
      { 'X-Timestamp': '1' },
      { 'X-App-Key': `pk_live_${'0'.repeat(24)}` },
      { 'X-Signature': '' },
    ]
    for (const change of changes) expect(await refusal(change)).to.equal(ONE_MESSAGE)
  })

  it('of a sandbox key without any proof names the headers that either kind of app needs', async () => {
    const missing =
      'X-Timestamp and X-Signature are missing, or, for an identity-token app, Authorization: Bearer with a token'
    for (const { apiKey } of [app, await anApp(service.ctx, { auth: 'identity' })]) {
      headers = { 'Content-Type': 'application/json', 'X-App-Key': apiKey }
      expect(await refusal()).to.equal(missing)
    }
    headers['X-App-Key'] = app.apiKey
    expect(await refusal({ Authorization: 'Bearer a.b.c' })).to.equal('X-Timestamp: is missing')
    expect(await refusal({ 'X-App-Key': `pk_test_${'0'.repeat(24)}`, Authorization: 'Bearer a.b.c' })).to.equal(
      'X-App-Key: no app has this key',
    )
  })

  it('of an identity-token app in a sandbox says whether the token is missing or wrong, and never why', async () => {
    const wrong = 'Authorization: must be Bearer with an identity token that is valid for this app and has not expired'
    headers['X-App-Key'] = (await anApp(service.ctx, { auth: 'identity' })).apiKey
    expect(await refusal()).to.equal('Authorization: Bearer with an identity token is missing')
    for (const Authorization of ['Bearer a.b.c', 'Bearer abc', 'a.b.c'])
      expect(await refusal({ Authorization })).to.equal(wrong)
    headers = { 'Content-Type': 'application/json', 'X-App-Key': headers['X-App-Key'] }
    expect(await refusal({ Authorization: 'Bearer abc' })).to.equal(wrong)
  })

  it('of a live identity-token app is the same message for every error', async () => {
    const { apiKey } = await anApp(service.ctx, { auth: 'identity', sandbox: false })
    expect(await refusal({ 'X-App-Key': apiKey })).to.equal(ONE_MESSAGE)
    expect(await refusal({ 'X-App-Key': apiKey, Authorization: 'Bearer a.b.c' })).to.equal(ONE_MESSAGE)
    headers = { 'Content-Type': 'application/json', 'X-App-Key': apiKey }
    expect(await refusal()).to.equal(ONE_MESSAGE)
  })
})
