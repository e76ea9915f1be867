import { expect } from 'chai'
import { after, afterEach, before, beforeEach, describe, it } from 'mocha'
import { getApp, apps } from '#apps/store.ts'
import { operator } from '#commands/caller.ts'
import { auditLog } from '#commands/store.ts'
import { realtimeWrites } from '#realtime/store.ts'
import {
  compareNodes,
  resyncNodes,
  type ResyncInput,
  type ResyncProgress,
  type ResyncScope,
} from '#subscriptions/resync-node.ts'
import { startClientScenario, unixMs, type ClientScenario } from '../support/client-scenario.ts'
import { anApp, LIFETIME, MONTHLY, paid } from '../support/factories.ts'
import { startOidcIssuer, type OidcIssuer } from '../support/oidc-issuer.ts'
import { startRealtimePeer, type RealtimePeer } from '../support/realtime-peer.ts'

describe('re-sync of realtime nodes', () => {
  let peer: RealtimePeer
  let issuer: OidcIssuer
  let scenario: ClientScenario
  let monthly: string
  let lifetime: string

  before(async () => {
    issuer = await startOidcIssuer()
  })
  after(async () => {
    await issuer.stop()
  })
  beforeEach(async () => {
    peer = await startRealtimePeer()
    scenario = await startClientScenario(peer, issuer)
    ;[monthly = '', lifetime = ''] = await scenario.plan('pro', MONTHLY, LIFETIME)
  })
  afterEach(async () => {
    await scenario.stop()
    await peer.stop()
  })

  const ctx = () => scenario.service.ctx
  const buy = (ref: string, price: string) => paid(ctx(), scenario.app, { external_ref: ref, price_id: price })
  const theApp = () => getApp(ctx().db, scenario.app.app.id)
  const resync = async (scope: ResyncScope, options: Pick<ResyncInput, 'after' | 'onProgress'> = {}) =>
    resyncNodes(ctx(), operator('linh'), { app: await theApp(), scope, ...options })
  const states = async () => (await ctx().db.all(realtimeWrites, '')).map(({ state }) => state).sort()
  const writtenRefs = () => peer.puts().map(({ keys }) => keys[1])

  it('of one end user writes only that node', async () => {
    await buy('user-1', monthly)
    await buy('user-2', monthly)
    peer.calls.length = 0
    expect(await resync({ externalRef: 'user-2' })).to.deep.equal({ written: 1, failed: 0 })
    expect(writtenRefs()).to.deep.equal(['user-2'])
  })

  it('of all writes the current state of each: premium, lifetime, and free after the end', async () => {
    await buy('over', monthly)
    scenario.clock.set('2026-04-15 00:00:00')
    await buy('running', monthly)
    await buy('lifetime', lifetime)
    scenario.clock.set('2026-05-01 00:00:00')
    expect(await resync('all')).to.deep.equal({ written: 3, failed: 0 })
    expect(await peer.read('users')).to.deep.equal({
      over: { subscription: { plan: 'free', purchaseSource: 'web', updatedAt: unixMs('2026-05-01 00:00:00') } },
      running: {
        subscription: {
          plan: 'premium',
          expiresAt: unixMs('2026-05-15 00:00:00'),
          purchaseSource: 'web',
          updatedAt: unixMs('2026-05-01 00:00:00'),
        },
      },
      lifetime: { subscription: { plan: 'premium', purchaseSource: 'web', updatedAt: unixMs('2026-05-01 00:00:00') } },
    })
  })

  it('of the failed ones writes only those', async () => {
    await buy('good', monthly)
    peer.behaviour = 503
    await buy('bad-1', monthly)
    await buy('bad-2', monthly)
    peer.behaviour = 'ok'
    peer.calls.length = 0
    expect(await states()).to.deep.equal(['done', 'failed', 'failed'])
    expect(await resync('failed')).to.deep.equal({ written: 2, failed: 0 })
    expect(writtenRefs().sort()).to.deep.equal(['bad-1', 'bad-2'])
    expect(await resync('failed')).to.deep.equal({ written: 0, failed: 0 })
    expect(await states()).to.deep.equal(['done', 'done', 'done'])
  })

  it('writes nodes of subscriptions that are older than the app’s realtime database', async () => {
    await ctx().db.update(apps, { id: scenario.app.app.id }, { realtimeDatabaseUrl: null })
    const app = { ...scenario.app, app: await getApp(ctx().db, scenario.app.app.id) }
    await paid(ctx(), app, { external_ref: 'early', price_id: monthly })
    await ctx().db.update(apps, { id: app.app.id }, { realtimeDatabaseUrl: 'https://demo-proj.firebaseio.com' })
    expect(await resync('all')).to.include({ written: 1 })
    expect(await peer.read('users/early/subscription')).to.include({ plan: 'premium' })
  })

  it('in a dry run reports the differences and writes nothing', async () => {
    await buy('over', monthly)
    scenario.clock.set('2026-04-15 00:00:00')
    await buy('same', monthly)
    peer.behaviour = 500
    await buy('lost', lifetime)
    peer.behaviour = 'ok'
    peer.calls.length = 0
    const result = await compareNodes(ctx(), { app: await theApp(), scope: 'all' })
    expect(result).to.include({ written: 0, failed: 0, differing: 2 })
    expect(
      result.differences?.map(({ external_ref, present, expected: node }) => [
        external_ref,
        present === null,
        node.plan,
      ]),
    ).to.have.deep.members([
      ['over', false, 'free'],
      ['lost', true, 'premium'],
    ])
    expect(peer.puts()).to.deep.equal([])
    expect(await ctx().db.count(auditLog, "WHERE action = 'realtime.resync'")).to.equal(0)
  })

  it('reports its progress, and continues where it stopped', async () => {
    for (let index = 0; index < 27; index += 1) await buy(`user-${index}`, monthly)
    peer.calls.length = 0
    const seen: ResyncProgress[] = []
    const onProgress = (progress: ResyncProgress) => {
      seen.push(progress)
      peer.behaviour = 503
    }
    const first = await resync('all', { onProgress })
    expect(first).to.include({ written: 5, failed: 20 })
    expect(seen.map(({ written, failed }) => [written, failed])).to.deep.equal([
      [5, 0],
      [5, 5],
      [5, 10],
      [5, 15],
      [5, 20],
    ])
    expect(first.next).to.equal(seen.at(-1)?.upTo)
    peer.behaviour = 'ok'
    peer.calls.length = 0
    expect(await resync('all', { after: first.next })).to.deep.equal({ written: 2, failed: 0 })
    expect(writtenRefs().sort()).to.deep.equal(['user-25', 'user-26'])
  })

  it('is limited to 50 nodes a second', async () => {
    for (let index = 0; index < 20; index += 1) await buy(`user-${index}`, monthly)
    const startedMs = performance.now()
    await resync('all')
    expect(performance.now() - startedMs).to.be.at.least(390)
  })

  it('stops after twenty failures in a row and returns where to continue', async () => {
    for (let index = 0; index < 25; index += 1) await buy(`user-${index}`, monthly)
    peer.behaviour = 503
    const result = await resync('all')
    expect(result).to.include({ written: 0, failed: 20 })
    expect(result.next).to.be.a('number')
    expect(result.failures).to.have.length(20)
    expect(result.failures).to.deep.include({
      external_ref: 'user-0',
      error: 'the database answered 503: {"error":"refused by the test"}',
    })
  })

  it('is written to the audit log with the operator who ran it', async () => {
    await buy('user-1', monthly)
    await resync('all')
    const row = (await ctx().db.one(auditLog, "WHERE action = 'realtime.resync'"))!
    expect(row.actor).to.equal('linh')
    expect(row.afterState).to.deep.equal({ scope: 'all', written: 1, failed: 0, next: null })
  })

  it('never writes free over a payment that is applied at the same time', async () => {
    await buy('user-1', monthly)
    scenario.clock.set('2026-05-01 00:00:00')
    const runs = [resync({ externalRef: 'user-1' }), buy('user-1', monthly), resync('all')]
    await Promise.all(runs)
    expect(await scenario.node()).to.include({ plan: 'premium', expiresAt: unixMs('2026-06-01 00:00:00') })
  })

  it('refuses an unknown end user, and an app without a database', async () => {
    const code = async (attempt: Promise<unknown>) =>
      attempt.then(String, (error: unknown) => (error as { code: string }).code)
    expect(await code(resync({ externalRef: 'nobody' }))).to.equal('not_found')
    const hmac = await anApp(ctx())
    expect(await code(resyncNodes(ctx(), operator('linh'), { app: hmac.app, scope: 'all' }))).to.equal(
      'invalid_request',
    )
  })
})
