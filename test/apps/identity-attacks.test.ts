import { perform } from '#commands/perform.ts'
import { operator } from '#commands/caller.ts'
import { createHmac } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import { expect } from 'chai'
import { exportJWK, exportSPKI, generateKeyPair, importJWK, SignJWT, type CryptoKey } from 'jose'
import { after, afterEach, before, beforeEach, describe, it } from 'mocha'
import { setIdentity } from '#apps/set-identity.ts'
import type { App } from '#apps/store.ts'
import { startService, type Response, type TestService } from '../support/api.ts'
import { anApp } from '../support/factories.ts'
import { listen } from '../support/http-server.ts'
import { startOidcIssuer, type OidcIssuer } from '../support/oidc-issuer.ts'

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')

/** The answer without its request id. */
function answerOf({ status, text }: Response): string {
  return `${status} ${text.replace(/req_[0-9a-f]{32}/, 'req')}`
}

const REFUSED =
  '401 {"success":false,"error":{"code":"unauthorized","message":"the key, signature, timestamp or token is missing or wrong","field":null,"request_id":"req"}}'

describe('identity tokens of an OIDC issuer', () => {
  let service: TestService
  let issuer: OidcIssuer
  let app: App
  let elsewhere: Server
  let elsewhereUrl: string
  let visits: string[]
  let foreignKey: CryptoKey | null = null

  before(async () => {
    visits = []
    elsewhere = createServer((request, response) => {
      visits.push(request.url ?? '')
      response.end('{}')
    })
    elsewhere.on('connection', () => visits.push('connection'))
    elsewhereUrl = `http://127.0.0.1:${await listen(elsewhere)}`
  })
  after(() => void elsewhere.close())

  beforeEach(async () => {
    visits.length = 0
    service = await startService()
    issuer = await startOidcIssuer()
    app = (await anApp(service.ctx, { auth: 'identity', sandbox: false })).app
    app = await perform(service.ctx, operator('tester'), setIdentity, identity(), { app })
  })
  afterEach(async () => {
    await service.stop()
    await issuer.stop()
  })

  const identity = (changes: object = {}) => {
    const { issuer: name, audience, jwksUrl } = issuer
    return { provider: 'oidc', issuer: name, audience, jwksUrl, ...changes }
  }
  const call = (token: string, headers: Record<string, string> = {}) =>
    service.call('GET', '/api/v1/plans', {
      headers: { 'X-App-Key': app.apiKey, Authorization: `Bearer ${token}`, ...headers },
    })
  const good = (claims = {}, header = {}) => issuer.token(service.ctx.clock.now(), 'user-1', claims, header)
  const seconds = () => Math.floor(service.ctx.clock.now().getTime() / 1000)
  const resigned = async (header: Record<string, unknown>, claims = {}) => {
    foreignKey ??= (await generateKeyPair('RS256')).privateKey
    const body = JSON.parse(Buffer.from((await good(claims)).split('.')[1]!, 'base64url').toString()) as object
    return new SignJWT({ ...body }).setProtectedHeader({ alg: 'RS256', ...header }).sign(foreignKey)
  }

  it('a valid token is accepted', async () => {
    expect((await call(await good())).status).to.equal(200)
    expect(issuer.fetched).to.deep.equal(['/jwks'])
    await call(await good())
    expect(issuer.fetched, 'keys are cached').to.have.length(1)
  })

  for (const alg of ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA']) {
    it(`${alg} is an allowed algorithm`, async () => {
      await issuer.rotate({ alg })
      expect((await call(await good())).status).to.equal(200)
    })
  }

  it('a token without a type, of type JWT in any case, or issued to the audience itself is accepted', async () => {
    for (const typ of [undefined, 'JWT', 'jwt']) expect((await call(await good({}, { typ }))).status).to.equal(200)
    expect((await call(await good({ azp: issuer.audience }))).status).to.equal(200)
    const both = { aud: [issuer.audience, 'another-app'], azp: issuer.audience }
    expect((await call(await good(both))).status).to.equal(200)
  })

  const attacks: Record<string, () => Promise<string> | string> = {
    'alg none': async () => {
      const [, payload] = (await good()).split('.')
      return `${encode({ alg: 'none', kid: issuer.key().kid })}.${payload}.`
    },
    'alg none, with the signature of another token': async () => {
      const [, payload, signature] = (await good()).split('.')
      return `${encode({ alg: 'none', kid: issuer.key().kid })}.${payload}.${signature}`
    },
    'HS256 with the public key in PEM form': async () => {
      const publicKey = await importJWK(issuer.key().publicJwk, 'RS256', { extractable: true })
      return forgeHs256(await exportSPKI(publicKey as CryptoKey))
    },
    'HS256 with the public key as JSON': () => forgeHs256(JSON.stringify(issuer.key().publicJwk)),
    'HS256 with an empty key': () => forgeHs256(''),
    'another issuer in the claims': () => good({ iss: 'https://evil.example' }),
    'no issuer': () => good({ iss: undefined }),
    'the key of another issuer': () => resigned({ kid: issuer.key().kid }),
    'another audience': () => good({ aud: 'another-app' }),
    'a list of other audiences': () => good({ aud: ['a', 'b'] }),
    'no audience': () => good({ aud: undefined }),
    'expired beyond the leeway': () => good({ exp: seconds() - 61 }),
    'no expiry': () => good({ exp: undefined }),
    'an expiry that is not a number': () => good({ exp: '9999999999' as unknown as number }),
    'not valid yet': () => good({ nbf: seconds() + 61 }),
    'issued in the future': () => good({ iat: seconds() + 61 }),
    'authenticated in the future': () => good({ auth_time: seconds() + 61 }),
    'no subject': () => good({ sub: undefined }),
    'an empty subject': () => good({ sub: '' }),
    'a subject that is a number': () => good({ sub: 7 as unknown as string }),
    'a subject longer than an external_ref': () => good({ sub: 'x'.repeat(192) }),
    'an unknown kid': () => good({}, { kid: 'nobody' }),
    'a kid that is a path': () => good({}, { kid: '../../../../dev/null' }),
    'a kid that is an address elsewhere': () => resigned({ kid: `${elsewhereUrl}/keys` }),
    'a key set elsewhere (jku)': () => resigned({ kid: 'x', jku: `${elsewhereUrl}/jwks` }),
    'certificates elsewhere (x5u)': () => resigned({ kid: 'x', x5u: `${elsewhereUrl}/x5u` }),
    'an issuer elsewhere with its own discovery': () => resigned({ kid: 'x' }, { iss: elsewhereUrl }),
    'a key of its own in the header (jwk)': async () => {
      const { privateKey, publicKey } = await generateKeyPair('RS256', { extractable: true })
      const jwk = await exportJWK(publicKey)
      const claims = { iss: issuer.issuer, aud: issuer.audience, sub: 'user-1', exp: seconds() + 60 }
      return new SignJWT(claims).setProtectedHeader({ alg: 'RS256', jwk, kid: issuer.key().kid }).sign(privateKey)
    },
    'a changed payload': async () => {
      const [header, payload, signature] = (await good()).split('.')
      const claims = JSON.parse(Buffer.from(payload!, 'base64url').toString()) as object
      return `${header}.${encode({ ...claims, sub: 'user-2' })}.${signature}`
    },
    'a removed signature': async () => (await good()).split('.').slice(0, 2).join('.') + '.',
    'an unknown critical header': async () => {
      const { privateKey, kid } = issuer.key()
      const claims = { iss: issuer.issuer, aud: issuer.audience, sub: 'user-1', exp: seconds() + 60 }
      const header = { alg: 'RS256', kid, crit: ['x-new'], 'x-new': 1 }
      return new SignJWT(claims).setProtectedHeader(header).sign(privateKey, { crit: { 'x-new': true } })
    },
    'an access token by its type': () => good({}, { typ: 'at+jwt' }),
    'a logout token by its type': () => good({}, { typ: 'logout+jwt' }),
    'a security event token by its type': () => good({}, { typ: 'secevent+jwt' }),
    'a DPoP proof by its type': () => good({}, { typ: 'dpop+jwt' }),
    'an empty type': () => good({}, { typ: '' }),
    'a type that is a list': () => good({}, { typ: ['JWT'] }),
    'a logout token by its events': () =>
      good({ events: { 'http://schemas.openid.net/event/backchannel-logout': {} } }),
    'events that are null': () => good({ events: null }),
    'issued to another client (azp)': () => good({ azp: 'another-app' }),
    'issued to another client, for two audiences': () =>
      good({ aud: [issuer.audience, 'another-app'], azp: 'another-app' }),
    'issued to a list of clients': () => good({ azp: [issuer.audience] }),
    'a huge token': () => good({ padding: 'x'.repeat(7000) }),
    'two parts': () => 'a.b',
    'not JSON': () => 'AAAA.BBBB.CCCC',
    'a header that is a list': () => `${encode([])}.${encode({})}.AAAA`,
  }

  function forgeHs256(secret: string): string {
    const claims = { iss: issuer.issuer, aud: issuer.audience, sub: 'user-1', exp: seconds() + 3600 }
    const signed = `${encode({ alg: 'HS256', kid: issuer.key().kid, typ: 'JWT' })}.${encode(claims)}`
    return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`
  }

  for (const [attack, forge] of Object.entries(attacks)) {
    it(`the same 401 for all, and no other server is called: ${attack}`, async () => {
      expect((await call(await good())).status).to.equal(200)
      expect(answerOf(await call(await forge()))).to.equal(REFUSED)
      expect(visits).to.deep.equal([])
      expect(issuer.fetched.every((path) => path === '/jwks')).to.equal(true)
    })
  }

  const outages = ['hang', 'huge', 'garbage', 500, 302, 204] as const
  for (const outage of outages) {
    it(`the same 401 for all, within 6 s: the server of the key set ${outage === 'hang' ? 'hangs' : `answers ${outage}`}`, async () => {
      issuer.behaviour = outage
      const startedMs = performance.now()
      expect(answerOf(await call(await good()))).to.equal(REFUSED)
      expect(performance.now() - startedMs).to.be.lessThan(6000)
      issuer.behaviour = 'ok'
      expect((await call(await good())).status, 'it is back').to.equal(200)
    })
  }

  it('the same 401 for all: the server of the key set is down', async () => {
    const token = await good()
    await issuer.stop()
    expect(answerOf(await call(token))).to.equal(REFUSED)
  })

  it('a missing token, or one that is not a bearer token, is refused the same way', async () => {
    const token = await good()
    for (const authorization of ['', 'Bearer', 'Bearer ', `Basic ${token}`, token, `Bearer ${token} ${token}`]) {
      expect(answerOf(await call(token, { Authorization: authorization })), authorization).to.equal(REFUSED)
    }
    expect(answerOf(await call(token, { 'X-App-Key': 'pk_live_nobody' }))).to.equal(REFUSED)
  })

  it('a token is accepted only for the app with its issuer and audience, and never for an HMAC app', async () => {
    const other = (await anApp(service.ctx, { auth: 'identity', sandbox: false })).app
    expect(answerOf(await call(await good(), { 'X-App-Key': other.apiKey })), 'no provider yet').to.equal(REFUSED)
    await perform(service.ctx, operator('tester'), setIdentity, identity({ audience: 'another-app' }), { app: other })
    expect(answerOf(await call(await good(), { 'X-App-Key': other.apiKey }))).to.equal(REFUSED)
    expect((await call(await good({ aud: 'another-app' }), { 'X-App-Key': other.apiKey })).status).to.equal(200)
    const hmac = (await anApp(service.ctx, { sandbox: false })).app
    expect(answerOf(await call(await good(), { 'X-App-Key': hmac.apiKey }))).to.equal(REFUSED)
  })

  it('clocks may differ by 60 s', async () => {
    for (const claims of [{ exp: seconds() - 59 }, { iat: seconds() + 60 }, { nbf: seconds() + 60 }]) {
      expect((await call(await good(claims))).status, JSON.stringify(claims)).to.equal(200)
    }
  })

  it('a new key is accepted at once, one that is no longer published is not', async () => {
    const before = await good()
    expect((await call(before)).status).to.equal(200)
    await issuer.rotate({ keepOld: true })
    expect((await call(await good())).status).to.equal(200)
    expect((await call(before)).status).to.equal(200)
    await issuer.rotate()
    expect((await call(await good())).status).to.equal(200)
    expect(answerOf(await call(before))).to.equal(REFUSED)
  })

  it('invented key ids cause only a few fetches of the key set, and lock nobody out', async () => {
    expect((await call(await good())).status).to.equal(200)
    for (let index = 0; index < 40; index += 1) await call(await good({}, { kid: `made-up-${index}` }))
    expect(issuer.fetched.length).to.be.at.most(12)
    expect((await call(await good())).status).to.equal(200)
  })

  it('no part of a token is logged', async () => {
    const token = await good()
    await call(token)
    const forged = `${token.slice(0, -8)}AAAAAAAA`
    await call(forged)
    const log = service.ctx.logged.join('')
    expect(log).to.contain('request')
    for (const part of [...token.split('.').slice(1), forged.split('.')[2]!]) expect(log).not.to.contain(part)
  })
})
