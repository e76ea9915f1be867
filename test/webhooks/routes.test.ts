import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { inTransaction } from '#commands/transaction.ts'
import { addMs } from '#shared/time.ts'
import { emitEvent } from '#webhooks/emit-event.ts'
import { listEvents } from '#webhooks/list-events.ts'
import { events } from '#webhooks/store.ts'
import type { Event } from '../../client/src/types.ts'
import { startService, type SellerClient, type TestService } from '../support/api.ts'
import { deliverDue } from '../support/deliver-due.ts'
import { aCompletion, anApp, aPlan, aSubscription, type TestApp } from '../support/factories.ts'
import { expectFieldError } from '../support/expect-error.ts'
import { Receiver } from '../support/receiver.ts'
import { rowsReadBy } from '../support/rows-read.ts'

/** Every event has one but that of a webhook's test. */
const refOf = ({ data }: Event) => ('external_ref' in data ? data.external_ref : '')

describe('GET /api/v1/events', () => {
  let service: TestService
  let app: TestApp
  let seller: SellerClient

  beforeEach(async () => {
    service = await startService()
    app = await anApp(service.ctx)
    seller = service.seller(app)
  })
  afterEach(() => service.stop())

  async function emit(reference: string, of: TestApp = app): Promise<void> {
    const data = aCompletion(reference)
    await inTransaction(service.ctx, (tx) => emitEvent(tx, { app: of.app, type: 'transaction.completed', data }))
  }

  it('lists the app’s events, newest first, with or without a webhook', async () => {
    await emit('first')
    service.ctx.clock.advance('1s')
    await emit('second')
    const { status, body } = await seller.get('/api/v1/events')
    expect(status).to.equal(200)
    expect(body.success).to.equal(true)
    expect(body.next_cursor).to.equal(null)
    expect(body.data).to.have.length(2)
    expect(body.data[0]!).to.deep.equal({
      id: body.data[0]!.id,
      event_type: 'transaction.completed',
      app_id: app.app.id,
      data: aCompletion('second'),
      created_at: '2026-03-01 10:00:01',
      delivery_status: 'not_configured',
      attempts: 0,
    })
    expect(body.data[0]!.id).to.match(/^evt_[1-9]\d*$/)
  })

  it('shows a delivery that succeeded', async () => {
    const receiver = await Receiver.start()
    const reached = await anApp(service.ctx, { webhookUrl: receiver.url })
    await emit('user-1', reached)
    await deliverDue(service.ctx)
    await receiver.stop()
    const { body } = await service.seller(reached).get('/api/v1/events')
    expect(body.data[0]!).to.include({ delivery_status: 'delivered', attempts: 1 })
  })

  describe('filters', () => {
    const refsOf = async (query: string) => {
      const answer = await seller.get(`/api/v1/events?${query}`)
      expect(answer.status, answer.text).to.equal(200)
      return answer.body.data.map(refOf)
    }
    const pagesOf = async (query: string) => {
      const seen: string[] = []
      let cursor = ''
      do {
        const { body } = await seller.get(`/api/v1/events?limit=2&${query}${cursor}`)
        seen.push(...body.data.map(refOf))
        cursor = body.next_cursor === null ? '' : `&cursor=${body.next_cursor}`
      } while (cursor !== '')
      return seen
    }

    it('by event_type, external_ref and created_after, which is exclusive by the second shown', async () => {
      await aSubscription(service.ctx, app, await aPlan(service.ctx, app), { external_ref: 'subscriber' })
      service.ctx.clock.advance('1s')
      for (const reference of ['an', 'binh', 'an']) await emit(reference)
      expect(await refsOf('event_type=transaction.completed')).to.deep.equal(['an', 'binh', 'an'])
      expect(new Set(await refsOf('event_type=subscription.updated'))).to.deep.equal(new Set(['subscriber']))
      expect(await refsOf('external_ref=an')).to.deep.equal(['an', 'an'])
      expect(await refsOf('external_ref=AN')).to.deep.equal([])
      expect(await refsOf('event_type=subscription.updated&external_ref=an')).to.deep.equal([])
      expect(await refsOf('created_after=2026-03-01+10:00:00')).to.deep.equal(['an', 'binh', 'an'])
      expect(await refsOf('created_after=2026-03-01%2010:00:01')).to.deep.equal([])
      expect(await refsOf('created_after=9999-12-31+23:59:59')).to.deep.equal([])
      await emit('late')
      const { id, createdAt } = (await service.ctx.db.one(events, "WHERE external_ref = 'late'"))!
      await service.ctx.db.update(events, { id }, { createdAt: addMs(createdAt, 500) })
      expect(await refsOf('created_after=2026-03-01+10:00:01'), 'shown as that second').to.deep.equal([])
    })

    it('and pages in either order', async () => {
      for (let i = 0; i < 5; i += 1) await emit(`user-${i}`)
      service.ctx.clock.advance('1s')
      await emit('user-5')
      const all = [0, 1, 2, 3, 4, 5].map((i) => `user-${i}`)
      expect(await pagesOf('order=asc')).to.deep.equal(all)
      expect(await pagesOf('order=desc&event_type=transaction.completed')).to.deep.equal(all.toReversed())
      expect(await pagesOf('order=asc&created_after=2026-03-01+10:00:00')).to.deep.equal(['user-5'])
    })

    it('and refuses what is no value of them', async () => {
      const bad = {
        event_type: ['', 'nothing', 'SUBSCRIPTION.UPDATED'],
        external_ref: [''],
        created_after: ['', 'x', '2026-02-30 00:00:00', '2026-03-01', '2026-03-01T10:00:00Z'],
        order: ['', 'ASC', 'newest'],
      }
      for (const [field, values] of Object.entries(bad))
        for (const value of values)
          expectFieldError(await seller.get(`/api/v1/events?${field}=${encodeURIComponent(value)}`), field)
    })

    it('read few rows of an app with many events', async () => {
      for (let i = 0; i < 60; i += 1) await emit(`user-${i}`)
      const query = { limit: '2', external_ref: 'user-7' }
      const [found, read] = await rowsReadBy(service.ctx, (ctx) => listEvents(ctx, app.app.id, query))
      expect(found.rows).to.have.lengthOf(1)
      expect(read).to.be.below(10)
      const none = { limit: '2', event_type: 'subscription.updated' }
      const [, readOfType] = await rowsReadBy(service.ctx, (ctx) => listEvents(ctx, app.app.id, none))
      expect(readOfType).to.be.below(10)
    })
  })

  it('pages through all of them, even those created at the same instant', async () => {
    for (let i = 0; i < 7; i += 1) await emit(`user-${i}`)
    const seen: string[] = []
    let cursor = ''
    do {
      const { body } = await seller.get(`/api/v1/events?limit=3${cursor}`)
      for (const event of body.data) seen.push(event.data.external_ref)
      cursor = body.next_cursor === null ? '' : `&cursor=${body.next_cursor}`
    } while (cursor !== '')
    expect(seen).to.deep.equal([6, 5, 4, 3, 2, 1, 0].map((i) => `user-${i}`))
  })

  for (const query of ['limit=0', 'limit=101', 'limit=x', 'cursor=x', 'cursor=', 'limit=1&limit=2']) {
    it(`refuses ?${query} as invalid_request`, async () => {
      const { status, body } = await seller.get(`/api/v1/events?${query}`)
      expect(status).to.equal(400)
      expect(body.error.code).to.equal('invalid_request')
    })
  }

  it('GET /api/v1/events/{id} returns one event', async () => {
    await emit('user-1')
    const listed = (await seller.get('/api/v1/events')).body.data[0]!
    const { status, body } = await seller.get(`/api/v1/events/${listed.id}`)
    expect(status).to.equal(200)
    expect(body.data).to.deep.equal(listed)
  })

  it("answers not_found for another app's event and for anything that is not an id", async () => {
    await emit('user-1', await anApp(service.ctx))
    const row = await service.ctx.db.one(events, '')
    for (const id of [`evt_${row!.id}`, `${row!.id}`, 'evt_0', 'evt_x', `evt_0${row!.id}`, 'evt_999999999']) {
      const { status, body } = await seller.get(`/api/v1/events/${id}`)
      expect(status, id).to.equal(404)
      expect(body.error.code).to.equal('not_found')
    }
  })
})
