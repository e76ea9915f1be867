import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { inTransaction } from '#commands/transaction.ts'
import { deliverDue } from '#webhooks/deliver-due.ts'
import { emitEvent } from '#webhooks/emit-event.ts'
import { startService, type SellerClient, type TestService } from '../support/api.ts'
import { aCompletion, anApp, type TestApp } from '../support/factories.ts'
import { Receiver } from '../support/receiver.ts'

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
    await inTransaction(service.ctx, (tx) =>
      emitEvent(tx, of.app, 'transaction.completed', data, { externalRef: reference, transactionId: null }),
    )
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
    expect(body.data[0]).to.deep.equal({
      id: body.data[0].id,
      event_type: 'transaction.completed',
      data: aCompletion('second'),
      created_at: '2026-03-01 10:00:01',
      delivery_status: 'not_configured',
      attempts: 0,
    })
    expect(body.data[0].id).to.match(/^evt_[1-9]\d*$/)
  })

  it('shows a delivery that succeeded', async () => {
    const receiver = await Receiver.start()
    const reached = await anApp(service.ctx, { webhookUrl: receiver.url })
    await emit('user-1', reached)
    await deliverDue(service.ctx)
    await receiver.stop()
    const { body } = await service.seller(reached).get('/api/v1/events')
    expect(body.data[0]).to.include({ delivery_status: 'delivered', attempts: 1 })
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
    const listed = (await seller.get('/api/v1/events')).body.data[0]
    const { status, body } = await seller.get(`/api/v1/events/${listed.id}`)
    expect(status).to.equal(200)
    expect(body.data).to.deep.equal(listed)
  })

  it("answers not_found for another app's event and for anything that is not an id", async () => {
    await emit('user-1', await anApp(service.ctx))
    const [row]: { id: number }[] = await service.ctx.db.query('SELECT id FROM events')
    for (const id of [`evt_${row!.id}`, `${row!.id}`, 'evt_0', 'evt_x', `evt_0${row!.id}`, 'evt_999999999']) {
      const { status, body } = await seller.get(`/api/v1/events/${id}`)
      expect(status, id).to.equal(404)
      expect(body.error.code).to.equal('not_found')
    }
  })
})
