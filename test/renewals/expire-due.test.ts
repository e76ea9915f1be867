import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { updateAppRow } from '#apps/store.ts'
import { inTransaction } from '#commands/transaction.ts'
import { expireDue } from '#renewals/expire-due.ts'
import { subscriptions } from '#subscriptions/store.ts'
import { events } from '#webhooks/store.ts'
import { LIFETIME, aPlan } from '../support/factories.ts'
import { rowsLike } from '../support/many-rows.ts'
import { aScene, type Scene } from './scene.ts'

describe('stored expiry', () => {
  let scene: Scene
  beforeEach(async () => {
    scene = await aScene()
  })
  afterEach(() => scene.stop())

  const countEvents = (): Promise<number> => scene.ctx.db.count(events, '')
  const statusOf = async (externalRef = 'user-1') => (await scene.subscription(externalRef)).status

  it('a period is stored as expired from the very moment of its end, without an event', async () => {
    await scene.subscribe()
    const before = await countEvents()
    scene.ctx.clock.set('2026-04-01 09:59:59')
    expect(await expireDue(scene.ctx)).to.equal(0)
    expect(await statusOf()).to.equal('active')
    scene.ctx.clock.set('2026-04-01 10:00:00')
    expect(await expireDue(scene.ctx)).to.equal(1)
    expect(await statusOf()).to.equal('expired')
    expect(await expireDue(scene.ctx)).to.equal(0)
    expect(await countEvents()).to.equal(before)
  })

  it('one that is paid again is stored as active, and lifetime ones stay so', async () => {
    const lifetime = await aPlan(scene.ctx, scene.seller, { prices: [LIFETIME] })
    await scene.subscribe()
    await scene.subscribe({ externalRef: 'user-2', plan: lifetime })
    scene.ctx.clock.set('2026-06-01 10:00:00')
    expect(await expireDue(scene.ctx)).to.equal(1)
    await scene.subscribe()
    expect([await statusOf(), await statusOf('user-2')]).to.deep.equal(['active', 'active'])
    expect(await expireDue(scene.ctx)).to.equal(0)
  })

  it('more than a batch is stored in one sweep, disabled apps’ too', async () => {
    const others = rowsLike(await scene.subscribe(), 120, (n) => ({
      endUserId: 1_000_000 + n,
      externalRef: `bulk-${n}`,
      renewalToken: `bulk-${n}`,
    }))
    await scene.ctx.db.insertAll(subscriptions, others)
    await inTransaction(scene.ctx, (tx) => updateAppRow(tx, scene.seller.app.id, { disabledAt: tx.now }))
    scene.ctx.clock.set('2026-04-01 10:00:00')
    expect(await expireDue(scene.ctx)).to.equal(121)
  })

  it('a sandbox app’s periods run out by its own clock', async () => {
    await scene.subscribe()
    await inTransaction(scene.ctx, (tx) => updateAppRow(tx, scene.seller.app.id, { clockOffsetMs: 31 * 86_400_000 }))
    expect(await expireDue(scene.ctx)).to.equal(1)
    expect(await statusOf()).to.equal('expired')
  })
})
