import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { connect } from 'node:net'
import { updateAppRow, paymentMethods } from '#apps/store.ts'
import { inTransaction } from '#commands/transaction.ts'
import { providerAccounts } from '#providers/accounts/store.ts'
import { listPayableSessions, providerSessions } from '#providers/store.ts'
import { unixSeconds } from '#shared/time.ts'
import { providerEvents } from '#transactions/store.ts'
import { events } from '#webhooks/store.ts'
import { enableMethod } from '../support/operators.ts'
import { aPlan, priceId } from '../support/factories.ts'
import { signedEvent } from '../support/stripe-peer.ts'
import { startCardShop, type CardShop, type OpenedCard } from './card-shop.ts'

describe('notifications of the card provider, POST /api/v1/webhooks/card-provider', () => {
  let shop: CardShop
  beforeEach(async () => {
    shop = await startCardShop()
  })
  afterEach(() => shop.stop())

  const statusOf = async (opened: OpenedCard, seller = shop.first): Promise<string> =>
    (await seller.client.get(`/api/v1/transactions/${opened.transactionId}`)).body.data.status
  const eventsTold = async (): Promise<string[]> => {
    const rows = await shop.service.ctx.db.all(events, 'ORDER BY id')
    return rows.map(({ eventType }) => eventType)
  }
  const paidSession = async (seller = shop.first, body = {}): Promise<OpenedCard> => {
    const opened = await shop.open(seller, body)
    shop.stripe.pay(opened.session)
    return opened
  }

  it('checkout.session.completed that is paid completes a one-time payment and sends transaction.completed', async () => {
    const opened = await paidSession()
    const answer = await shop.notify(shop.event(opened.session))
    expect(answer.status).to.equal(200)
    expect(answer.body).to.deep.equal({ success: true, data: { status: 'processed' } })
    expect(await statusOf(opened)).to.equal('completed')
    expect(await eventsTold()).to.deep.equal(['transaction.completed'])
    expect(await shop.notes()).to.deep.equal([])
  })

  it('checkout.session.completed that is paid activates a subscription', async () => {
    const plan = await aPlan(shop.service.ctx, shop.first.app)
    const opened = await paidSession(shop.first, { mode: 'subscription', price_id: priceId(plan) })
    await shop.notify(shop.event(opened.session))
    const { body } = await shop.first.client.get('/api/v1/subscriptions/user-1')
    expect(body.data).to.include({ status: 'active', current_period_end: '2026-04-01 10:00:00' })
    expect(await eventsTold()).to.deep.equal(['subscription.updated'])
  })

  it('the period starts when the card was charged, however late the notification is', async () => {
    const plan = await aPlan(shop.service.ctx, shop.first.app)
    const opened = await paidSession(shop.first, { mode: 'subscription', price_id: priceId(plan) })
    const event = shop.event(opened.session)
    shop.clock.advance('4m')
    await shop.notify(event)
    const { body } = await shop.first.client.get('/api/v1/subscriptions/user-1')
    expect(body.data.current_period_end).to.equal('2026-04-01 10:00:00')
  })

  it('a session that is complete and unpaid waits for checkout.session.async_payment_succeeded', async () => {
    const opened = await shop.open()
    shop.stripe.pay(opened.session, 'delayed')
    expect((await shop.notify(shop.event(opened.session))).body.data.status).to.equal('ignored')
    expect(await statusOf(opened)).to.equal('pending')
    shop.stripe.settle(opened.session)
    const arrived = shop.event(opened.session, { type: 'checkout.session.async_payment_succeeded' })
    expect((await shop.notify(arrived)).body.data.status).to.equal('processed')
    expect(await statusOf(opened)).to.equal('completed')
  })

  it('a session that needed no payment pays nothing', async () => {
    const opened = await paidSession()
    const event = shop.event(opened.session, { changes: { payment_status: 'no_payment_required' } })
    expect((await shop.notify(event)).body.data.status).to.equal('ignored')
    expect(await statusOf(opened)).to.equal('pending')
  })

  for (const type of [
    'checkout.session.expired',
    'checkout.session.async_payment_failed',
    'payment_intent.succeeded',
    'invoice.paid',
    'customer.subscription.updated',
    'charge.succeeded',
    'refund.created',
    'something.new',
  ]) {
    it(`${type} gets 200 and is ignored`, async () => {
      const opened = await paidSession()
      const answer = await shop.notify(shop.event(opened.session, { type }))
      expect(answer.status).to.equal(200)
      expect(answer.body.data.status).to.equal('ignored')
      expect(await statusOf(opened)).to.equal('pending')
      expect(await shop.notes()).to.deep.equal([])
    })
  }

  it('the same event id again is a duplicate; the same payment under another id changes nothing', async () => {
    const opened = await paidSession()
    const event = shop.event(opened.session)
    expect((await shop.notify(event)).body.data.status).to.equal('processed')
    expect((await shop.notify(event)).body.data.status).to.equal('duplicate')
    expect((await shop.notify(shop.event(opened.session))).body.data.status).to.equal('already_completed')
    const { body } = await shop.first.client.get(`/api/v1/transactions/${opened.transactionId}`)
    expect(body.data).to.include({ flagged: false, amount_received: 1999 })
    expect(await eventsTold()).to.deep.equal(['transaction.completed'])
  })

  it('two sessions of one transaction that are both paid complete it once and flag duplicate_payment', async () => {
    const opened = await shop.open()
    await shop.service.ctx.db.update(providerSessions, { status: 'open' }, { status: 'closed' })
    await shop.choose(opened.token)
    const [one, two] = shop.stripe.sessions
    shop.stripe.pay(one!)
    shop.stripe.pay(two!)
    expect((await shop.notify(shop.event(one!))).body.data.status).to.equal('processed')
    expect((await shop.notify(shop.event(two!))).body.data.status).to.equal('already_completed')
    const { body } = await shop.first.client.get(`/api/v1/transactions/${opened.transactionId}`)
    expect(body.data).to.include({ flag_reason: 'duplicate_payment', amount_received: 3998 })
  })

  it('a payment after the end of checkout and session completes', async () => {
    const opened = await paidSession()
    shop.clock.advance('3d')
    expect((await shop.notify(shop.event(opened.session))).body.data.status).to.equal('processed')
    expect(await statusOf(opened)).to.equal('completed')
  })

  it("a disabled app's open payment completes", async () => {
    const opened = await paidSession()
    const { ctx } = shop.service
    await inTransaction(ctx, (tx) => updateAppRow(tx, shop.first.app.app.id, { disabledAt: tx.now }))
    expect((await shop.notify(shop.event(opened.session))).body.data.status).to.equal('processed')
    expect(await eventsTold()).to.deep.equal(['transaction.completed'])
  })

  it('a card method that was disabled since completes what it opened', async () => {
    const opened = await paidSession()
    await shop.service.ctx.db.update(paymentMethods, { isEnabled: true }, { isEnabled: false })
    expect((await shop.notify(shop.event(opened.session))).body.data.status).to.equal('processed')
  })

  describe('what does not fit what was opened pays nothing, and operators see it', () => {
    const MISFITS: Record<string, object> = {
      'a smaller amount': { amount_total: 1 },
      'a larger amount': { amount_total: 2000 },
      'no amount': { amount_total: null },
      'another currency': { currency: 'vnd' },
      'no currency': { currency: null },
      'another transaction': { client_reference_id: '999' },
      'another mode': { mode: 'subscription' },
      'a session that was never opened': { id: 'cs_test_never' },
    }
    for (const [what, changes] of Object.entries(MISFITS)) {
      it(what, async () => {
        const opened = await paidSession()
        const event = shop.event(opened.session, { changes })
        const answer = await shop.notify(event)
        expect(answer.status).to.equal(200)
        expect(answer.body.data.status).to.equal('refused')
        expect((await shop.notify(event)).status).to.equal(200)
        expect(await statusOf(opened)).to.equal('pending')
        expect(await eventsTold()).to.deep.equal([])
        const notes = await shop.notes()
        expect(notes).to.have.length(1)
        expect(notes[0]!.outcome).to.equal('refused')
      })
    }

    it("a session of the seller's other business is ignored and not kept", async () => {
      const opened = await paidSession()
      const foreign = { id: 'cs_test_other', metadata: {}, client_reference_id: 'their-order' }
      expect((await shop.notify(shop.event(opened.session, { changes: foreign }))).body.data.status).to.equal('ignored')
      expect(await shop.notes()).to.deep.equal([])
    })
  })

  describe('one address for the apps of many sellers', () => {
    it("each app's notifications are known by its own secret", async () => {
      const one = await paidSession(shop.first)
      const two = await paidSession(shop.second)
      expect((await shop.notify(shop.event(two.session))).body.data.status).to.equal('processed')
      expect((await shop.notify(shop.event(one.session))).body.data.status).to.equal('processed')
      expect(await statusOf(one, shop.first)).to.equal('completed')
      expect(await statusOf(two, shop.second)).to.equal('completed')
    })

    it('the secret of another app does not verify a session that names its app', async () => {
      const opened = await paidSession(shop.first)
      const answer = await shop.notify(shop.event(opened.session, { secret: shop.second.webhookSecret }))
      expect(answer.status).to.equal(400)
      expect(await statusOf(opened)).to.equal('pending')
    })

    for (const [what, metadata] of Object.entries({
      'without the metadata': {},
      'with its own app in the metadata': 'own',
    })) {
      it(`a seller cannot complete the transaction of another, ${what}, nor use up its event`, async () => {
        const victim = await paidSession(shop.first)
        const ids = { transaction_id: String(victim.transactionId), app_id: String(shop.second.app.app.id) }
        const forged = shop.event(victim.session, {
          id: 'evt_1',
          secret: shop.second.webhookSecret,
          changes: { metadata: metadata === 'own' ? ids : metadata },
        })
        const answer = await shop.notify(forged)
        expect(answer.status).to.equal(200)
        expect(answer.body.data.status).to.equal('refused')
        expect(await statusOf(victim)).to.equal('pending')
        expect(await shop.notes()).to.have.length(1)
        const genuine = shop.event(victim.session, { id: 'evt_1' })
        expect((await shop.notify(genuine)).body.data.status).to.equal('processed')
      })
    }

    it('a seller cannot end the session of another, nor hold it up as if a debit were under way', async () => {
      const victim = await shop.open()
      const changes = { status: 'complete', payment_status: 'unpaid', metadata: {} }
      const { db } = shop.service.ctx
      for (const type of ['checkout.session.completed', 'checkout.session.async_payment_failed']) {
        const notify = (app: { webhookSecret: string }) =>
          shop.notify(shop.event(victim.session, { type, secret: app.webhookSecret, changes }))
        const sessions = () => listPayableSessions(db, victim.transactionId)
        const before = await sessions()
        expect((await notify(shop.second)).body.data.status).to.equal('ignored')
        expect(await sessions(), type).to.deep.equal(before)
        await notify(shop.first)
        expect(await sessions(), type).not.to.deep.equal(before)
      }
    })

    it('apps that share a provider account and its secret are distinguished by the session', async () => {
      await enableMethod(shop.service.ctx, 'tester', shop.second.app.app, 'card', {
        secretKey: 'sk_test_first',
        webhookSecret: shop.first.webhookSecret,
      })
      const opened = await paidSession(shop.second)
      const event = shop.event(opened.session, { secret: shop.first.webhookSecret, changes: { metadata: {} } })
      expect((await shop.notify(event)).body.data.status).to.equal('processed')
      expect(await statusOf(opened, shop.second)).to.equal('completed')
    })

    it("credentials that do not open stop no other app's payment", async () => {
      const opened = await paidSession(shop.first)
      await shop.service.ctx.db.update(
        providerAccounts,
        { appId: shop.second.app.app.id },
        { credentials: 'v1.test.x.y.z' },
      )
      const event = shop.event(opened.session, { changes: { metadata: {} } })
      expect((await shop.notify(event)).body.data.status).to.equal('processed')
    })
  })

  it('an error of our own is 500, and the same notification completes the payment when it is over', async () => {
    const { db } = shop.service.ctx
    const opened = await paidSession()
    const event = shop.event(opened.session)
    const appId = shop.first.app.app.id
    const kept = await db.one(providerAccounts, 'WHERE app_id = ?', [appId])
    await db.update(providerAccounts, { appId }, { credentials: 'v1.lost.x.y.z' })
    const answer = await shop.notify(event)
    expect(answer.status).to.equal(500)
    expect(answer.body.error.code).to.equal('internal_error')
    await db.update(providerAccounts, { appId }, { credentials: kept!.credentials })
    expect((await shop.notify(event)).body.data.status).to.equal('processed')
  })

  describe('what cannot be verified is 400, with one body for all', () => {
    const at = (): number => unixSeconds(shop.clock.now())
    const signed = (opened: OpenedCard, late = 0) => shop.event(opened.session, { late })

    it('bad signatures, timestamps and bodies', async () => {
      const opened = await paidSession()
      const good = signed(opened)
      const header = good.headers['Stripe-Signature']!
      const hex = header.split('v1=')[1]!
      const withHeader = (text: string) => ({ ...good, headers: { ...good.headers, 'Stripe-Signature': text } })
      const ofText = (text: string | Buffer) => {
        const payload = Buffer.from(text)
        const forged = signedEvent(shop.first.webhookSecret, at(), 'x', {})
        return { ...forged, body: payload }
      }
      const noSignature = { 'Content-Type': 'application/json' }
      const cases: Record<string, { body: Buffer; headers: Readonly<Record<string, string>> }> = {
        'no signature header': { ...good, headers: noSignature },
        'an empty header': withHeader(''),
        'a header of words': withHeader('hello'),
        'no v1': withHeader(header.replace('v1=', 'v0=')),
        'six signatures, a right one among them': withHeader(`${header}${`,v1=${'0'.repeat(64)}`.repeat(5)}`),
        'a short signature': withHeader(`t=${at()},v1=${hex.slice(0, 63)}`),
        'a long signature': withHeader(`t=${at()},v1=${hex}0`),
        'an upper-case signature': withHeader(`t=${at()},v1=${hex.toUpperCase()}`),
        'a timestamp that is no number': withHeader(header.replace(/t=\d+/, 't=soon')),
        'a timestamp 301 s ago': signed(opened, -301),
        'a timestamp 301 s ahead': signed(opened, 301),
        'a timestamp a day ahead': signed(opened, 86_400),
        're-serialised JSON': { ...good, body: Buffer.from(JSON.stringify(JSON.parse(good.body.toString()))) },
        'a byte-order mark': { ...good, body: Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), good.body]) },
        'one byte more': { ...good, body: Buffer.concat([good.body, Buffer.from('\n')]) },
        'no body': { ...good, body: Buffer.alloc(0) },
        'no JSON': ofText('hello'),
        'an array': ofText('[]'),
        'a number': ofText('1'),
        'no UTF-8': ofText(Buffer.from([0x7b, 0xff, 0x7d])),
        'a body over 256 KB': { ...good, body: Buffer.concat([good.body, Buffer.alloc(256 * 1024, 0x20)]) },
        "an unknown app's secret": shop.event(opened.session, { secret: 'whsec_unknown' }),
      }
      const bodies = new Set<string>()
      for (const [what, event] of Object.entries(cases)) {
        const answer = await shop.notify(event)
        expect(answer.status, what).to.equal(400)
        expect(answer.body.error.code, what).to.equal('invalid_request')
        bodies.add(JSON.stringify({ ...answer.body, error: { ...answer.body.error, request_id: '' } }))
      }
      expect(bodies.size).to.equal(1)
      expect(await statusOf(opened)).to.equal('pending')
      expect(shop.service.ctx.logged.join('')).not.to.match(/whsec_|sk_test/)
    })

    it('rightly signed content that is no event', async () => {
      const contents = ['{}', '[]', '1', '"x"', 'null', '{"id":"evt_1"}', '{"id":"evt_1","type":"x","data":{}}', '{']
      for (const content of contents) {
        const { Stripe } = await import('stripe')
        const { webhookSecret: secret } = shop.first
        const header = Stripe.webhooks.generateTestHeaderString({ payload: content, secret, timestamp: at() })
        const answer = await shop.notify({ body: Buffer.from(content), headers: { 'Stripe-Signature': header } })
        expect(answer.status, content).to.equal(400)
      }
    })

    it('two signature headers, chunked bodies and Expect: 100-continue over a raw socket', async () => {
      const opened = await paidSession()
      const { body, headers } = signed(opened)
      const line = `Stripe-Signature: ${headers['Stripe-Signature']!}`
      const chunked = `${body.length.toString(16)}\r\n${body.toString()}\r\n0\r\n\r\n`
      const twice = [line, line, `Content-Length: ${body.length}`]
      expect(await rawStatus(shop, twice, body.toString())).to.equal(400)
      expect(await rawStatus(shop, [line, 'Transfer-Encoding: chunked'], `3\r\nabc\r\n${chunked}`)).to.equal(400)
      expect(await statusOf(opened)).to.equal('pending')
      const expecting = [line, `Content-Length: ${body.length}`, 'Expect: 100-continue']
      expect(await rawStatus(shop, expecting, body.toString())).to.equal(200)
      expect(await statusOf(opened)).to.equal('completed')
    })

    it('GET is 405', async () => {
      const answer = await shop.service.call('GET', '/api/v1/webhooks/card-provider')
      expect(answer.status).to.equal(405)
      expect(answer.headers['allow']).to.equal('POST')
    })
  })

  it("no payer's name, address or body gets into the log or the stored events", async () => {
    const opened = await paidSession()
    const payer = { customer_details: { name: 'PAYER NAME', email: 'payer@example.com' } }
    await shop.notify(shop.event(opened.session, { changes: { ...payer, amount_total: 1 } }))
    await shop.notify(shop.event(opened.session, { changes: payer }))
    const stored = JSON.stringify(await shop.service.ctx.db.all(providerEvents, ''))
    expect(stored + shop.service.ctx.logged.join('')).not.to.match(/PAYER NAME|payer@example\.com|whsec_/)
  })

  it('100 copies of one event over 50 connections are all answered 200 and applied once', async () => {
    const opened = await paidSession()
    const event = shop.event(opened.session)
    const answers = await Promise.all(Array.from({ length: 100 }, () => shop.notify(event)))
    expect(new Set(answers.map(({ status }) => status))).to.deep.equal(new Set([200]))
    expect(answers.filter(({ body }) => body.data.status === 'processed')).to.have.length(1)
    expect(await eventsTold()).to.deep.equal(['transaction.completed'])
  })
})

/** Sends a request byte by byte as written; returns the last status that is answered. */
function rawStatus(shop: CardShop, headers: readonly string[], body: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(shop.service.url)
    const socket = connect(Number(port), hostname)
    let text = ''
    socket.on('data', (data) => (text += data.toString()))
    socket.on('error', reject)
    socket.on('close', () => resolve(Number([...text.matchAll(/^HTTP\/1\.1 (\d{3})/gm)].at(-1)?.[1])))
    const start = 'POST /api/v1/webhooks/card-provider HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n'
    socket.write(`${start}${headers.join('\r\n')}\r\n\r\n${body}`)
  })
}
