import { apps } from '#apps/store.ts'
import { perform } from '#commands/perform.ts'
import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import FirebaseServer from 'firebase-server'
import { after, afterEach, before, beforeEach, describe, it } from 'mocha'
import sinon, { useFakeTimers } from 'sinon'
import { createCheckoutSession } from '#checkout/create-session.ts'
import { inTransaction } from '#commands/transaction.ts'
import { databaseNow } from '#db/database-now.ts'
import {
  findRealtimeWrite,
  listAbandoned,
  queueRealtimeWrite,
  realtimeWrites,
  type RealtimeWrite,
} from '#realtime/store.ts'
import { writeNode } from '#realtime/write-node.ts'
import { addMs, HOUR_MS, SECOND_MS, systemClock } from '#shared/time.ts'
import { finishPendingWrites } from '#subscriptions/finish-pending-writes.ts'
import { writeNodeOf } from '#subscriptions/queue-node.ts'
import { operator } from '#commands/caller.ts'
import { resyncNodes } from '#subscriptions/resync-node.ts'
import { subscriptions } from '#subscriptions/store.ts'
import { wrongClock } from '../support/context.ts'
import { startClientScenario, unixMs, type ClientScenario } from '../support/client-scenario.ts'
import { FREE_TRIAL, MONTHLY, SERVER } from '../support/factories.ts'
import { startOidcIssuer, type OidcIssuer } from '../support/oidc-issuer.ts'
import { startRealtimePeer, type RealtimePeer, type RestCall } from '../support/realtime-peer.ts'
import { freePort } from '../support/free-ports.ts'
import { until } from '../support/until.ts'

describe('writing the realtime node', () => {
  let peer: RealtimePeer
  let issuer: OidcIssuer
  let scenario: ClientScenario
  let monthly: string

  before(async () => {
    issuer = await startOidcIssuer()
  })
  after(async () => {
    await issuer.stop()
  })
  beforeEach(async () => {
    peer = await startRealtimePeer()
    scenario = await startClientScenario(peer, issuer)
    ;[monthly = ''] = await scenario.plan('pro', MONTHLY)
  })
  afterEach(async () => {
    await scenario.stop()
    await peer.stop()
  })

  const ctx = () => scenario.service.ctx
  const row = async (): Promise<RealtimeWrite | null> => {
    return findRealtimeWrite(ctx().db, (await ctx().db.one(subscriptions, 'LIMIT 1'))!.id)
  }
  /** Leases run by the server's own clock. */
  const changeLease = async (changes: Pick<Partial<RealtimeWrite>, 'leaseToken' | 'leaseUntil'>) =>
    ctx().db.update(realtimeWrites, { subscriptionId: (await row())!.subscriptionId }, changes)

  it('goes to the emulator as owner, under the name of the database, without requesting a token', async () => {
    await scenario.buy(monthly)
    for (const { headers, namespace, keys } of peer.calls) {
      expect(headers.authorization).to.equal('Bearer owner')
      expect(namespace).to.equal('demo-proj')
      expect(keys).to.deep.equal(['users', 'user-1', 'subscription'])
    }
    expect(peer.calls.map(({ method }) => method)).to.deep.equal(['GET', 'PUT'])
  })

  it("reaches an emulator that only speaks the SDKs' own protocol, as firebase-server does", async () => {
    peer.behaviour = 426
    await scenario.buy(monthly)
    const node = await peer.read('users/user-1/subscription')
    expect(node).to.include({ plan: 'premium', purchaseSource: 'web' })
    expect(node).to.have.all.keys('plan', 'expiresAt', 'purchaseSource', 'updatedAt')
    expect((await row())?.state).to.equal('done')
  })

  it('a write that such an emulator refuses is recorded as failed', async () => {
    peer.behaviour = 426
    peer.refuseSocketWrites()
    await scenario.buy(monthly)
    expect(await row()).to.include({ state: 'failed' })
  })

  it('replaces the whole node', async () => {
    await scenario.buy(monthly)
    expect(Object.keys(peer.puts()[0]?.body as object).sort()).to.deep.equal([
      'expiresAt',
      'plan',
      'purchaseSource',
      'updatedAt',
    ])
  })

  it('uses the app’s path, even with the uid as part of a key', async () => {
    const other = await startClientScenario(peer, issuer)
    await other.service.ctx.db.update(apps, { id: other.app.app.id }, { realtimePath: 'a/u-{uid}-x' })
    const [price] = await other.plan('pro', MONTHLY)
    await other.buy(price!)
    expect(peer.puts().at(-1)?.keys).to.deep.equal(['a', 'u-user-1-x'])
    await other.stop()
  })

  it('a uid of any allowed characters becomes one key', async () => {
    const ref = 'Ünï çødé %2F?&=+~\'"{uid}'
    const checkout = await scenario.as(ref).post('/api/v1/checkout-sessions', {
      external_ref: ref,
      mode: 'subscription',
      price_id: monthly,
      success_url: 'https://shop.example/ok',
      cancel_url: 'https://shop.example/no',
    })
    await scenario.pay(checkout.body.data)
    expect(peer.puts()[0]?.keys).to.deep.equal(['users', ref, 'subscription'])
    expect(await peer.read(`users/${ref}/subscription`)).to.include({ plan: 'premium' })
  })

  it('is recorded as done', async () => {
    await scenario.buy(monthly)
    expect(await row()).to.include({ state: 'done', attempts: 0, lastError: null, leaseToken: null })
    expect(ctx().counted).to.deep.include({ metric: 'realtime_writes_total', labels: { outcome: 'written' } })
  })

  for (const behaviour of [401, 403, 404, 500, 503] as const) {
    it(`a database that answers ${behaviour}: recorded on the subscription, logged, counted; the call succeeds`, async () => {
      peer.behaviour = behaviour
      await scenario.buy(monthly)
      expect((await scenario.subscription()).status).to.equal('active')
      const failed = await row()
      expect(failed).to.include({ state: 'failed', attempts: 1, leaseToken: null })
      expect(failed?.lastError).to.contain(String(behaviour))
      expect(ctx().counted).to.deep.include({ metric: 'realtime_writes_total', labels: { outcome: 'failed' } })
      expect(ctx().logged.join('')).to.contain('the realtime node was not written')
    })
  }

  it('the next successful write clears a failure', async () => {
    peer.behaviour = 500
    await scenario.buy(monthly)
    peer.behaviour = 'ok'
    await scenario.buy(monthly)
    expect(await row()).to.include({ state: 'done', attempts: 0, lastError: null })
  })

  it('a late write whose lease has expired does not overwrite a later state', async () => {
    await scenario.buy(monthly)
    const [reached, late] = [Promise.withResolvers<undefined>(), Promise.withResolvers<undefined>()]
    peer.beforeCall = async ({ method }: RestCall) => {
      if (method !== 'PUT') return
      peer.beforeCall = () => undefined
      reached.resolve(undefined)
      await late.promise
    }
    scenario.clock.set('2026-03-02 10:00:00')
    const first = scenario.buy(monthly)
    await reached.promise
    // As if its daemon had been suspended during the write for longer than the lease lasts.
    await changeLease({ leaseUntil: addMs(systemClock.now(), -SECOND_MS) })
    scenario.clock.set('2026-03-03 10:00:00')
    await scenario.buy(monthly)
    expect(await scenario.node()).to.include({ expiresAt: unixMs('2026-06-01 10:00:00') })
    late.resolve(undefined)
    await first
    expect(await scenario.node()).to.include({ expiresAt: unixMs('2026-06-01 10:00:00') })
    expect((await scenario.subscription()).current_period_end).to.equal('2026-06-01 10:00:00')
  })

  it('a node that somebody else changes between its read and its write is written all the same', async () => {
    await scenario.buy(monthly)
    peer.beforeCall = async ({ method }: RestCall) => {
      if (method !== 'PUT') return
      peer.beforeCall = () => undefined
      await peer.write('users/user-1/subscription', { plan: 'free' })
    }
    await scenario.buy(monthly)
    expect(await scenario.node()).to.include({ plan: 'premium', expiresAt: unixMs('2026-05-01 10:00:00') })
  })

  it('a change made while the node is being written is written too, before its call is answered', async () => {
    await scenario.buy(monthly)
    const [reached, goOn] = [Promise.withResolvers<undefined>(), Promise.withResolvers<undefined>()]
    peer.beforeCall = async ({ method }: RestCall) => {
      if (method !== 'PUT') return
      peer.beforeCall = () => undefined
      reached.resolve(undefined)
      await goOn.promise
    }
    const first = scenario.buy(monthly)
    await reached.promise
    const second = scenario.buy(monthly).then(async () => scenario.node())
    const committed = async () => (await ctx().db.one(subscriptions, ''))!.revision === 3
    await until(committed)
    goOn.resolve(undefined)
    await first
    expect(await second).to.include({ expiresAt: unixMs('2026-06-01 10:00:00') })
    expect(await row()).to.include({ state: 'done' })
  })

  it('works with a database without ETags, one writer at a time', async () => {
    peer.givesEtags = false
    await scenario.buy(monthly)
    await scenario.buy(monthly)
    expect(peer.puts().every(({ headers }) => headers['if-match'] === undefined)).to.equal(true)
    expect(await scenario.node()).to.include({ expiresAt: unixMs('2026-05-01 10:00:00') })
  })

  it("works with firebase-server's own REST surface", async () => {
    const port = await freePort()
    const server = new FirebaseServer({ port, address: '127.0.0.1', rest: true }, 'localhost')
    const settings = { FIREBASE_DATABASE_EMULATOR_HOST: `127.0.0.1:${port}` }
    const other = await startClientScenario(peer, issuer, { settings })
    const [price] = await other.plan('pro', MONTHLY)
    await other.buy(price!)
    expect(await server.getValue()).to.deep.equal({
      users: {
        'user-1': {
          subscription: {
            plan: 'premium',
            expiresAt: unixMs('2026-04-01 10:00:00'),
            purchaseSource: 'web',
            updatedAt: unixMs('2026-03-01 10:00:00'),
          },
        },
      },
    })
    await other.stop()
    await server.close()
  })

  describe('left pending by a crash', () => {
    /** A change committed by a daemon that died before it wrote the node. */
    const crash = async () => {
      peer.behaviour = 500
      await scenario.buy(monthly)
      peer.behaviour = 'ok'
      peer.calls.length = 0
      const { subscriptionId, appId, requestedRevision } = (await row())!
      await inTransaction(ctx(), (tx) => queueRealtimeWrite(tx, { appId, subscriptionId, revision: requestedRevision }))
    }

    it('is finished by the reconcile job once no caller can be waiting any more', async () => {
      await crash()
      expect(await finishPendingWrites(ctx())).to.deep.equal({ written: 0, failed: 0 })
      scenario.clock.advance('16s')
      expect(await finishPendingWrites(ctx())).to.deep.equal({ written: 1, failed: 0 })
      expect(await scenario.node()).to.include({ plan: 'premium', expiresAt: unixMs('2026-04-01 10:00:00') })
      expect(await finishPendingWrites(ctx())).to.deep.equal({ written: 0, failed: 0 })
    })

    it('is finished, however many of another app cannot be', async () => {
      await crash()
      const pending = (await row())!
      const other = { ...pending, appId: 900_000, requestedAt: addMs(pending.requestedAt, -SECOND_MS) }
      const others = Array.from({ length: 120 }, (_, number) => ({ ...other, subscriptionId: 900_000 + number }))
      await ctx().db.insertAll(realtimeWrites, others)
      scenario.clock.advance('16s')
      expect((await finishPendingWrites(ctx())).written).to.equal(1)
      expect(await scenario.node()).to.include({ plan: 'premium' })
    })

    it('with a lease is finished after the lease, not before', async () => {
      await crash()
      scenario.clock.advance('16s')
      await changeLease({ leaseToken: 'dead', leaseUntil: addMs(systemClock.now(), 20 * SECOND_MS) })
      expect(await finishPendingWrites(ctx())).to.deep.equal({ written: 0, failed: 0 })
      await changeLease({ leaseUntil: addMs(systemClock.now(), -SECOND_MS) })
      expect(await finishPendingWrites(ctx())).to.deep.equal({ written: 1, failed: 0 })
    })

    it('is left to the reconcile job if a caller waited so long for another writer that less than a second is left', async () => {
      await crash()
      await changeLease({ leaseToken: 'other', leaseUntil: addMs(systemClock.now(), 20 * SECOND_MS) })
      const clock = useFakeTimers({ toFake: ['performance'] })
      try {
        const writing = writeNodeOf(ctx(), scenario.app.app, (await row())!.subscriptionId, 'change')
        clock.tick(3 * SECOND_MS)
        expect(await writing).to.equal('pending')
      } finally {
        clock.restore()
      }
      expect(await row()).to.include({ state: 'pending', leaseToken: 'other' })
      expect(peer.puts()).to.deep.equal([])
    })

    it('is made by the reconcile job if this process stood still, or was busy, for most of the time of its caller', async () => {
      const now = performance.now.bind(performance)
      for (const stoodStillMs of [60 * SECOND_MS, 3.5 * SECOND_MS]) {
        await crash()
        peer.behaviour = 'hang'
        let lostMs = 0
        const clock = sinon.stub(performance, 'now').callsFake(() => now() + lostMs)
        const load = () => {
          lostMs = stoodStillMs
          return Promise.resolve({ externalRef: 'user-1', currentPeriodEnd: null })
        }
        try {
          const { subscriptionId } = (await row())!
          expect(await writeNode(ctx(), { app: scenario.app.app, subscriptionId, load }, 'change')).to.equal('pending')
        } finally {
          clock.restore()
        }
        expect(await row()).to.include({ state: 'pending', leaseToken: null })
        peer.behaviour = 'ok'
        scenario.clock.advance('16s')
        expect(await finishPendingWrites(ctx())).to.deep.equal({ written: 1, failed: 0 })
      }
    })

    it('is found by all daemons at the same time, even if the clock of the crashed one was hours ahead', async () => {
      await crash()
      const { subscriptionId, appId, requestedRevision } = (await row())!
      const ahead = { ...ctx(), clock: wrongClock(5 * HOUR_MS) }
      await inTransaction(ahead, (tx) => queueRealtimeWrite(tx, { appId, subscriptionId, revision: requestedRevision }))
      const now = await databaseNow(ahead, ctx().db)
      expect(await listAbandoned(ctx().db, addMs(now, 1), 10)).to.have.length(1)
    })

    it('after expiry becomes premium with a past end: only a re-sync writes free', async () => {
      await crash()
      scenario.clock.set('2026-06-01 00:00:00')
      await finishPendingWrites(ctx())
      expect(await scenario.node()).to.include({ plan: 'premium', expiresAt: unixMs('2026-04-01 10:00:00') })
    })

    it('is not retried if it failed: that is left to the operator', async () => {
      peer.behaviour = 500
      await scenario.buy(monthly)
      peer.behaviour = 'ok'
      scenario.clock.advance('1h')
      expect(await finishPendingWrites(ctx())).to.deep.equal({ written: 0, failed: 0 })
      expect(await scenario.node()).to.equal(null)
      expect(await resyncNodes(ctx(), operator('linh'), { app: scenario.app.app, scope: 'failed' })).to.include({
        written: 1,
      })
      expect(await scenario.node()).to.include({ plan: 'premium' })
    })
  })

  describe('keys that the database forbids', () => {
    const KEY = 'realtime database'
    const forbidden: readonly [ref: string, reason: string][] = [
      ...['a.b', 'a$b', 'a#b', 'a[b', 'a]b', 'a/b', 'an@example.com'].map((ref): [string, string] => [ref, KEY]),
      // No URL can hold these, whether the app has a realtime database or not.
      ['.', 'must not be . or ..'],
      ['..', 'must not be . or ..'],
    ]
    for (const [ref, reason] of forbidden) {
      it(`checkout of ${JSON.stringify(ref)} fails before anything is paid, on external_ref`, async () => {
        const answer = await scenario.as(ref).post('/api/v1/checkout-sessions', {
          external_ref: ref,
          mode: 'subscription',
          price_id: monthly,
          success_url: 'https://shop.example/ok',
          cancel_url: 'https://shop.example/no',
        })
        expect(answer.status, answer.text).to.equal(400)
        expect(answer.body.error).to.include({ code: 'invalid_request', field: 'external_ref' })
        expect(answer.body.error.message).to.contain(reason)
      })
    }

    it('an external_ref that fits into a path of 768 bytes is written; one byte more fails before anything is paid', async () => {
      // users/ + ref + /subscription/ + the longest key of the node, with one slash per key.
      const available = 768 - 'users//subscription/purchaseSource/'.length
      const longest = '😀'.repeat(Math.floor(available / 4)) + 'x'.repeat(available % 4)
      const open = (ref: string) =>
        perform(
          ctx(),
          SERVER,
          createCheckoutSession,
          {
            external_ref: ref,
            mode: 'subscription',
            price_id: monthly,
            success_url: 'https://shop.example/ok',
            cancel_url: 'https://shop.example/no',
          },
          { app: scenario.app.app, endUser: null },
        )
      await scenario.pay(await open(longest))
      expect(await peer.read(`users/${longest}/subscription`)).to.include({ plan: 'premium' })
      const error = await open(`${longest}x`).catch((thrown: unknown) => thrown)
      expect(error).to.include({ code: 'invalid_request', field: 'external_ref' })
    })

    it('apps without a realtime database may use any external_ref', async () => {
      await ctx().db.update(apps, { id: scenario.app.app.id }, { realtimeDatabaseUrl: null })
      const [trial] = await scenario.plan('other', { ...MONTHLY, trial: FREE_TRIAL })
      const answer = await scenario.as('a.b/c').post('/api/v1/checkout-sessions', {
        external_ref: 'a.b/c',
        mode: 'subscription',
        price_id: trial,
        success_url: 'https://shop.example/ok',
        cancel_url: 'https://shop.example/no',
      })
      expect(answer.body.data.activated).to.equal(true)
      expect(peer.calls).to.deep.equal([])
    })
  })

  it("the SDK's own write, which waits indefinitely while the server is unreachable, is not used for any real database", () => {
    for (const file of ['firebase.ts', 'write-node.ts', 'access-token.ts']) {
      expect(readFileSync(`src/realtime/${file}`, 'utf8')).not.to.contain('firebase-admin/database')
    }
  })
})
