import { perform } from '#commands/perform.ts'
import { operator } from '#commands/caller.ts'
import { createHmac } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { request } from 'undici'
import { createApp } from '#apps/create-app.ts'
import { setIdentity } from '#apps/set-identity.ts'
import { getApp, listApps } from '#apps/store.ts'
import { verifyIdentityToken } from '#apps/verify-identity-token.ts'
import { aSigningCertificate } from '../support/certificates.ts'
import { testContext } from '../support/context.ts'
import { startDaemonProcess, type DaemonProcess } from '../support/daemon-process.ts'
import { refusalOf } from '../support/expect-error.ts'
import { PROJECT, startGooglePeer, type GooglePeer } from '../support/google-peer.ts'
import { listen } from '../support/http-server.ts'

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
const seconds = () => Math.floor(Date.now() / 1000)

const REFUSED =
  '401 {"success":false,"error":{"code":"unauthorized","message":"the key, signature, timestamp or token is missing or wrong","field":null,"request_id":"req"}}'

/** Adds a Firebase app to the test database, which is emptied after each test. */
async function aFirebaseApp(projectId = PROJECT): Promise<string> {
  const ctx = testContext()
  const { app_id, api_key } = await perform(
    ctx,
    operator('tester'),
    createApp,
    { name: 'Reader', auth: 'identity' },
    {},
  )
  await perform(
    ctx,
    operator('tester'),
    setIdentity,
    { provider: 'firebase', projectId },
    { app: await getApp(ctx.db, app_id) },
  )
  return api_key
}

async function call(daemon: DaemonProcess, apiKey: string, token: string): Promise<string> {
  const headers = { 'x-app-key': apiKey, authorization: `Bearer ${token}` }
  const answer = await request(`${daemon.url}/api/v1/plans`, { headers })
  const text = (await answer.body.text()).replace(/req_[0-9a-f]{32}/, 'req')
  return answer.statusCode === 200 ? '200' : `${answer.statusCode} ${text}`
}

/** The real firebase-admin in a daemon with production settings; Google's certificates come from a local peer through a proxy. */
describe('identity tokens of a Firebase project', () => {
  let google: GooglePeer
  let daemon: DaemonProcess
  let elsewhere: Server
  let elsewhereUrl: string
  const visits: string[] = []

  before(async () => {
    google = await startGooglePeer()
    daemon = await startDaemonProcess({ BILLING_ENV: 'production', BILLING_LOG_LEVEL: 'trace', ...google.environment })
    elsewhere = createServer((_request, response) => void response.end('{}'))
    elsewhere.on('connection', () => visits.push('connection'))
    elsewhereUrl = `http://127.0.0.1:${await listen(elsewhere)}`
  })
  after(async () => {
    await daemon.stop()
    await google.stop()
    elsewhere.close()
  })

  const good = (claims = {}, header = {}) => google.idToken(new Date(), 'user-1', claims, header)

  it("401 within 6 s while Google's certificates are not available, and accepted again afterwards", async () => {
    const apiKey = await aFirebaseApp()
    google.certificateBehaviour = 500
    expect(await call(daemon, apiKey, await good())).to.equal(REFUSED)
    google.certificateBehaviour = 'hang'
    const startedMs = performance.now()
    expect(await call(daemon, apiKey, await good())).to.equal(REFUSED)
    expect(performance.now() - startedMs).to.be.lessThan(6000)
    google.certificateBehaviour = 'ok'
    // For a while tokens are refused immediately, so that calls do not pile up.
    while ((await call(daemon, apiKey, await good())) !== '200') {
      expect(performance.now() - startedMs).to.be.lessThan(15_000)
      await delay(50)
    }
  })

  it('certificates are fetched once for many tokens', async () => {
    const apiKey = await aFirebaseApp()
    expect(await call(daemon, apiKey, await good())).to.equal('200')
    const fetched = google.certificateRequests
    for (let index = 0; index < 10; index += 1) await call(daemon, apiKey, await good({}, { kid: `made-up-${index}` }))
    expect(await call(daemon, apiKey, await good())).to.equal('200')
    expect(google.certificateRequests).to.equal(fetched)
  })

  const foreign = () => aSigningCertificate().key
  const attacks: Record<string, () => Promise<string> | string> = {
    'alg none': async () => `${encode({ alg: 'none', kid: 'google-1' })}.${(await good()).split('.')[1]}.`,
    'alg none without kid': async () => `${encode({ alg: 'none' })}.${(await good()).split('.')[1]}.`,
    'HS256 with the public certificate': async () => {
      const signed = `${encode({ alg: 'HS256', kid: 'google-1', typ: 'JWT' })}.${(await good()).split('.')[1]}`
      return `${signed}.${createHmac('sha256', google.certificate).update(signed).digest('base64url')}`
    },
    'the key of somebody else': () => google.idToken(new Date(), 'user-1', {}, {}, foreign()),
    'another issuer': () => good({ iss: 'https://securetoken.google.com/another-project' }),
    'an issuer elsewhere': () => good({ iss: elsewhereUrl }),
    'another audience': () => good({ aud: 'another-project' }),
    'a list of audiences': () => good({ aud: [PROJECT, 'another'] }),
    'expired beyond the leeway': () => good({ exp: seconds() - 62 }),
    'expired within the leeway, with the key of somebody else': () =>
      google.idToken(new Date(), 'user-1', { exp: seconds() - 20 }, {}, foreign()),
    'expired within the leeway, of another project': () => good({ exp: seconds() - 20, aud: 'another-project' }),
    'expired within the leeway, with an unknown kid': () => good({ exp: seconds() - 20 }, { kid: 'nobody' }),
    'no expiry': () => good({ exp: undefined }),
    'issued in the future': () => good({ iat: seconds() + 90 }),
    'authenticated in the future': () => good({ auth_time: seconds() + 90 }),
    'not valid yet': () => good({ nbf: seconds() + 90 }),
    'no subject': () => good({ sub: undefined }),
    'an empty subject': () => good({ sub: '' }),
    'a subject of 129 characters': () => good({ sub: 'x'.repeat(129) }),
    'an unknown kid': () => good({}, { kid: 'nobody' }),
    'no kid': () => good({}, { kid: undefined }),
    'a kid that is an address elsewhere': () => good({}, { kid: `${elsewhereUrl}/keys` }),
    'a kid that is a property of every object': () => good({}, { kid: 'constructor' }),
    'a key set elsewhere (jku)': () => good({}, { kid: 'x', jku: `${elsewhereUrl}/jwks` }),
    'certificates elsewhere (x5u)': () => good({}, { kid: 'x', x5u: `${elsewhereUrl}/x5u` }),
    'a custom token': () =>
      good({
        iss: 'svc@demo-proj.iam.gserviceaccount.com',
        aud: 'https://identitytoolkit.googleapis.com/google.identity.identitytoolkit.v1.IdentityToolkit',
      }),
    'a huge token': () => good({ padding: 'x'.repeat(7000) }),
    'no token': () => 'a.b.c',
  }
  for (const [attack, forge] of Object.entries(attacks)) {
    it(`the same 401 for all, and no other server is called: ${attack}`, async () => {
      const apiKey = await aFirebaseApp()
      expect(await call(daemon, apiKey, await good())).to.equal('200')
      google.connects.length = 0
      expect(await call(daemon, apiKey, await forge())).to.equal(REFUSED)
      expect(visits).to.deep.equal([])
      expect(google.connects.filter((target) => target !== 'www.googleapis.com:443')).to.deep.equal([])
    })
  }

  it('clocks may differ by 60 s', async () => {
    const apiKey = await aFirebaseApp()
    expect(await call(daemon, apiKey, await good({ exp: seconds() - 50 }))).to.equal('200')
    expect(await call(daemon, apiKey, await good({ iat: seconds() + 50, auth_time: seconds() + 50 }))).to.equal('200')
  })

  it('each project accepts only its own tokens', async () => {
    const other = await aFirebaseApp('another-project')
    expect(await call(daemon, other, await good())).to.equal(REFUSED)
    const claims = { aud: 'another-project', iss: 'https://securetoken.google.com/another-project' }
    expect(await call(daemon, other, await good(claims))).to.equal('200')
  })

  it('no part of a token is logged', async () => {
    const apiKey = await aFirebaseApp()
    const token = await good()
    await call(daemon, apiKey, token)
    await call(daemon, apiKey, await good({ aud: 'another-project' }))
    const log = daemon.logged.join('\n')
    expect(log).to.contain('request')
    for (const part of token.split('.').slice(1)) expect(log).not.to.contain(part)
  })

  it('the Firebase Auth emulator disables no check, not even in development', async () => {
    // The SDK looks at the environment of its process for each token.
    process.env['FIREBASE_AUTH_EMULATOR_HOST'] = new URL(elsewhereUrl).host
    try {
      const ctx = testContext()
      await aFirebaseApp()
      const [app] = await listApps(ctx.db)
      const [, payload = ''] = (await good()).split('.')
      const unsigned = [
        `${encode({ alg: 'none', typ: 'JWT' })}.${payload}.`,
        `${encode({ alg: 'none', kid: 'google-1' })}.${payload}.`,
      ]
      const foreignKey = await google.idToken(new Date(), 'user-1', {}, {}, foreign())
      for (const token of [...unsigned, foreignKey])
        expect((await refusalOf(verifyIdentityToken(ctx, app!, token))).code).to.equal('unauthorized')
      expect(visits).to.deep.equal([])
    } finally {
      delete process.env['FIREBASE_AUTH_EMULATOR_HOST']
    }
  })
})
