import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { after, afterEach, before, beforeEach, describe, it } from 'mocha'
import { request } from 'undici'
import { findRealtimeWrite, realtimeWrites } from '#realtime/store.ts'
import { addMs, MINUTE_MS } from '#shared/time.ts'
import { subscriptions } from '#subscriptions/store.ts'
import { verifyLedger } from '#ledger/verify-ledger.ts'
import { startClientScenario, type ClientScenario } from '../support/client-scenario.ts'
import { startDaemonProcess, type DaemonProcess } from '../support/daemon-process.ts'
import { aCheckout, anOwnCustomer, MONTHLY, tokenOf } from '../support/factories.ts'
import { startOidcIssuer, type OidcIssuer } from '../support/oidc-issuer.ts'
import { startRealtimePeer, type RealtimePeer } from '../support/realtime-peer.ts'
import { until } from '../support/until.ts'

const CHANGES = 50

/** A busy machine rejects callers or times out on a lock: nothing was done. */
const isBusy = (status: number): boolean => status === 429 || status === 503

describe('two daemons on one database', () => {
  let peer: RealtimePeer
  let issuer: OidcIssuer
  let scenario: ClientScenario
  let daemons: DaemonProcess[]

  before(async () => {
    peer = await startRealtimePeer()
    issuer = await startOidcIssuer()
    const settings = { FIREBASE_DATABASE_EMULATOR_HOST: peer.host, BILLING_SWEEP_SECONDS: '0.5' }
    daemons = await Promise.all([startDaemonProcess(settings), startDaemonProcess(settings)])
  })
  beforeEach(async () => {
    scenario = await startClientScenario(peer, issuer)
  })
  afterEach(async () => {
    await scenario.stop()
    await peer.write('users', null)
  })
  after(async () => {
    await Promise.all(daemons.map((daemon) => daemon.stop()))
    await issuer.stop()
    await peer.stop()
  })

  it('50 concurrent changes on one subscription leave the node equal to the subscription', async () => {
    const { ctx } = scenario.service
    scenario.clock.setToPresent()
    const [monthly] = await scenario.plan('pro', MONTHLY)
    await scenario.buy(monthly!)
    const tokens: string[] = []
    for (let index = 0; index < CHANGES / 2; index += 1) {
      tokens.push(tokenOf(await aCheckout(ctx, scenario.app, { price_id: monthly })))
    }
    const customers = await Promise.all([1, 2, 3, 4, 5].map(() => anOwnCustomer(ctx, scenario.app, 'user-1')))
    const bearer = await issuer.token(scenario.clock.now(), 'user-1')
    peer.beforeCall = async () => {
      await delay(Math.random() * 20)
    }
    peer.calls.length = 0
    const call = async (index: number, method: 'POST' | 'PUT', path: string, body: object): Promise<number> => {
      const headers = {
        'content-type': 'application/json',
        'x-app-key': scenario.app.apiKey,
        authorization: `Bearer ${bearer}`,
      }
      const { url } = daemons[index % 2]!
      const answer = await request(url + path, { method, headers, body: JSON.stringify(body) })
      await answer.body.dump()
      return isBusy(answer.statusCode) ? call(index, method, path, body) : answer.statusCode
    }
    const changes = tokens.flatMap((token, index) => [
      call(index, 'POST', `/checkout/${token}/resolve`, { payment_method: 'test' }),
      call(index, 'PUT', '/api/v1/subscriptions/user-1/customer', { customer_id: `cus_${customers[index % 5]!.id}` }),
    ])
    expect(new Set(await Promise.all(changes))).to.deep.equal(new Set([200]))

    const { id, revision, currentPeriodEnd: end } = (await ctx.db.one(subscriptions, ''))!
    expect(revision).to.equal(CHANGES + 1)
    // On a busy machine a caller may run out of time: then the reconcile job makes its write.
    await until(async () => (await findRealtimeWrite(ctx.db, id))?.state !== 'pending')
    expect(await findRealtimeWrite(ctx.db, id)).to.include({ state: 'done', leaseToken: null })
    expect(await scenario.node()).to.include({ plan: 'premium', expiresAt: end!.getTime() })
    const ends = peer.puts().map(({ body }) => (body as { expiresAt: number }).expiresAt)
    expect(ends, 'the node never moves back').to.deep.equal([...ends].sort((a, b) => a - b))
    expect((await verifyLedger(ctx, null)).faults).to.deep.equal([])
  })

  it('a write interrupted by kill -9 is finished by the other daemon once the lease expires', async () => {
    const { ctx } = scenario.service
    scenario.clock.setToPresent()
    const [monthly] = await scenario.plan('pro', MONTHLY)
    const token = tokenOf(await aCheckout(ctx, scenario.app, { price_id: monthly }))
    const reached = new Promise<void>((resolve) => {
      peer.beforeCall = ({ method }) => (method === 'PUT' ? (resolve(), new Promise<void>(() => undefined)) : undefined)
    })
    const pay = async (): Promise<number> => {
      const answer = await request(`${daemons[0]!.url}/checkout/${token}/resolve`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ payment_method: 'test' }),
      })
      await answer.body.dump()
      return isBusy(answer.statusCode) ? pay() : answer.statusCode
    }
    const paying = pay().catch(() => null)
    await reached
    await daemons[0]!.kill()
    expect(await paying, 'the payer got no answer').to.equal(null)
    peer.beforeCall = () => undefined
    expect(await scenario.node()).to.equal(null)
    // Skips the time that the lease lasts and that callers may wait.
    const { subscriptionId, requestedAt, leaseUntil } = (await ctx.db.one(realtimeWrites, ''))!
    const aMinuteAgo = { requestedAt: addMs(requestedAt, -MINUTE_MS), leaseUntil: addMs(leaseUntil!, -MINUTE_MS) }
    await ctx.db.update(realtimeWrites, { subscriptionId }, aMinuteAgo)
    await until(async () => (await scenario.node()) !== null)
    const { current_period_end: end } = await scenario.subscription()
    expect(await scenario.node()).to.include({ plan: 'premium', expiresAt: Date.parse(`${end!.replace(' ', 'T')}Z`) })
  })
})
