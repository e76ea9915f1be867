import { createPublicKey } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { expect } from 'chai'
import { jwtVerify } from 'jose'
import { after, afterEach, before, beforeEach, describe, it } from 'mocha'
import { request } from 'undici'
import { getApp, updateAppRow } from '#apps/store.ts'
import { inTransaction } from '#commands/transaction.ts'
import { findRealtimeWrite, type RealtimeWrite } from '#realtime/store.ts'
import { subscriptions } from '#subscriptions/store.ts'
import { startClientScenario, type ClientScenario } from '../support/client-scenario.ts'
import { startDaemonProcess, type DaemonProcess } from '../support/daemon-process.ts'
import { aCheckout, MONTHLY, tokenOf } from '../support/factories.ts'
import { startGooglePeer, type GooglePeer } from '../support/google-peer.ts'
import { startOidcIssuer, type OidcIssuer } from '../support/oidc-issuer.ts'
import { startRealtimePeer, type RealtimePeer } from '../support/realtime-peer.ts'
import { aServiceAccount } from '../support/service-account.ts'
import { until } from '../support/until.ts'

/**
 * A daemon with production settings against a database with the real protocol over TLS; the token exchange goes through a proxy to a
 * local peer under Google's name. The service is unchanged: proxy and certificate authority come from its environment.
 */
describe('the realtime database over TLS, with access tokens', () => {
  let google: GooglePeer
  let peer: RealtimePeer
  let issuer: OidcIssuer
  let scenario: ClientScenario
  let daemon: DaemonProcess
  let monthly: string

  before(async () => {
    google = await startGooglePeer()
    // The second client runs in this process.
    const ca = readFileSync(google.authority.caPath, 'utf8')
    setDefaultCACertificates([...getCACertificates('default'), ca])
    issuer = await startOidcIssuer()
    peer = await startRealtimePeer({ tls: google.authority.issue('localhost', '127.0.0.1'), token: 'ya29.first' })
    daemon = await startDaemonProcess({ BILLING_ENV: 'production', BILLING_LOG_LEVEL: 'trace', ...google.environment })
    await openScenario()
    await warmUp()
    await scenario.stop()
  })
  after(async () => {
    await daemon.stop()
    await peer.stop()
    await issuer.stop()
    await google.stop()
    setDefaultCACertificates(getCACertificates('bundled'))
  })
  beforeEach(async () => {
    google.tokenRequests.length = 0
    google.tokenBehaviour = 'ok'
    google.tokenSeconds = 3600
    google.accessToken = peer.token = 'ya29.first'
    peer.calls.length = 0
    peer.behaviour = 'ok'
    await openScenario()
  })
  afterEach(() => scenario.stop())

  async function openScenario(): Promise<void> {
    scenario = await startClientScenario(peer, issuer, { databaseUrl: peer.url, settings: {} })
    scenario.clock.setToPresent()
    ;[monthly = ''] = await scenario.plan('pro', MONTHLY)
  }
  /** Pays on the daemon's hosted page; returns how long that took, in milliseconds. */
  const pay = async (ref = 'user-1'): Promise<number> => {
    const checkout = await aCheckout(scenario.service.ctx, scenario.app, { external_ref: ref, price_id: monthly })
    const startedMs = performance.now()
    const answer = await request(`${daemon.url}/checkout/${tokenOf(checkout)}/resolve`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ payment_method: 'test' }),
    })
    expect(answer.statusCode, await answer.body.text()).to.equal(200)
    return performance.now() - startedMs
  }
  /** The first token and the first connection wait for what a process loads for them: on a busy machine longer than a payment waits. */
  const warmUp = async (): Promise<void> => {
    let payments = 0
    await until(async () => {
      payments += 1
      await pay(`user-${payments}`)
      return (await row())?.state === 'done'
    })
  }
  /** That of the newest subscription. */
  const row = async (): Promise<RealtimeWrite | null> => {
    const { db } = scenario.service.ctx
    return findRealtimeWrite(db, (await db.one(subscriptions, 'ORDER BY id DESC LIMIT 1'))!.id)
  }

  it('a payment is written and can be read by a second client', async () => {
    await pay('user-tls')
    expect(await row(), (await row())?.lastError ?? '').to.include({ state: 'done' })
    expect(await peer.read('users/user-tls/subscription')).to.include({ plan: 'premium', purchaseSource: 'web' })
    expect(peer.puts()[0]?.headers.authorization).to.equal('Bearer ya29.first')
  })

  it('the service account signs the token request, and one token serves many writes', async () => {
    await Promise.all(Array.from({ length: 5 }, (_, index) => pay(`user-${index}`)))
    await pay()
    expect(peer.puts()).to.have.length(6)
    expect(google.tokenRequests).to.have.length(1)
    const { privateKey, clientEmail } = aServiceAccount()
    const { payload } = await jwtVerify(google.tokenRequests[0]!, createPublicKey(privateKey), { issuer: clientEmail })
    expect(payload['scope']).to.contain('https://www.googleapis.com/auth/firebase.database')
  })

  it('a service account that was moved from another app’s row is not used, also where that app’s nodes were written with it', async () => {
    await pay()
    const first = scenario
    await openScenario()
    try {
      const { realtimeServiceAccount } = await getApp(first.service.ctx.db, first.app.app.id)
      await inTransaction(first.service.ctx, (tx) => updateAppRow(tx, scenario.app.app.id, { realtimeServiceAccount }))
      await pay()
      expect((await row())?.lastError).to.contain('cannot be decrypted')
      expect(peer.puts()).to.have.length(1)
    } finally {
      await first.stop()
    }
  })

  it('a token that expires within five minutes is renewed before the next write', async () => {
    google.tokenSeconds = 240
    await pay()
    google.accessToken = peer.token = 'ya29.second'
    google.tokenSeconds = 3600
    await pay()
    expect(peer.puts().map(({ headers }) => headers.authorization)).to.deep.equal([
      'Bearer ya29.first',
      'Bearer ya29.second',
    ])
    expect(peer.calls, 'no call was refused').to.have.length(4)
  })

  it('a token that the database refuses before its expiry is replaced, once', async () => {
    await pay()
    google.accessToken = peer.token = 'ya29.second'
    await pay()
    expect(await row(), (await row())?.lastError ?? '').to.include({ state: 'done' })
    expect(google.tokenRequests).to.have.length(2)
    peer.token = 'ya29.never'
    await pay()
    expect((await row())?.lastError).to.contain('401')
    expect(google.tokenRequests).to.have.length(3)
  })

  it('a token endpoint that hangs delays the payment by less than 6 s, and the next token not at all once it is back', async () => {
    google.tokenBehaviour = 'hang'
    expect(await pay()).to.be.lessThan(6000)
    expect(await row()).to.include({ state: 'failed' })
    expect((await row())?.lastError).to.contain('no access token')
    google.tokenBehaviour = 'ok'
    await pay()
    expect(await row()).to.include({ lastError: null, state: 'done' })
  })

  it('a token endpoint that refuses leaves the write failed, with the reason', async () => {
    google.tokenBehaviour = 403
    expect(await pay()).to.be.lessThan(6000)
    expect(await row()).to.include({ state: 'failed' })
    expect((await row())?.lastError).to.contain('no access token')
  })

  it('the proxy is used for the token endpoint only, and no secret is logged', async () => {
    google.connects.length = 0
    await pay()
    expect(new Set(google.connects)).to.deep.equal(new Set(['oauth2.googleapis.com:443']))
    const log = daemon.logged.join('\n')
    expect(log).to.contain('request')
    expect(log).not.to.contain('ya29.')
    expect(log).not.to.contain(aServiceAccount().privateKey.split('\n')[3])
    for (const assertion of google.tokenRequests) expect(log).not.to.contain(assertion)
  })
})
