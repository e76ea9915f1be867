import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { paymentMethods } from '#apps/store.ts'
import { reconcilePayments } from '#providers/engine/reconcile-payments.ts'
import { payosCredentials } from '#providers/payos/credentials.ts'
import { payments } from '#payments/store.ts'
import { providerSessions } from '#providers/store.ts'
import { addMs, HOUR_MS, unixSeconds } from '#shared/time.ts'
import { find } from '#support/find.ts'
import { providerEvents } from '#transactions/store.ts'
import { events } from '#webhooks/store.ts'
import { aCheckout, anApp, aPlan, priceId, tokenOf } from '../support/factories.ts'
import { enableMethod } from '../support/operators.ts'
import { payosNotification, signOfData } from '../support/payos-peer.ts'
import { until } from '../support/until.ts'
import { PAYOS_KEYS, PURCHASE, startPayosShop, type PayosShop } from './payos-shop.ts'

describe('paying through PayOS', () => {
  let shop: PayosShop
  beforeEach(async () => {
    shop = await startPayosShop()
  })
  afterEach(() => shop.stop())

  const sessions = async (): Promise<{ status: string; reference: string | null }[]> => {
    const rows = await shop.service.ctx.db.all(providerSessions, 'ORDER BY id')
    return rows.map(({ status, reference }) => ({ status, reference }))
  }
  const eventsTold = async (): Promise<string[]> => {
    const rows = await shop.service.ctx.db.all(events, 'ORDER BY id')
    return rows.map(({ eventType }) => eventType)
  }
  const notes = async (): Promise<{ outcome: string; note: string | null }[]> => {
    const rows = await shop.service.ctx.db.all(providerEvents, "WHERE outcome <> 'applied'")
    return rows.map(({ outcome, note }) => ({ outcome, note }))
  }

  describe('opening', () => {
    it('the payer is sent to a payment link with an integer order code that ends with the checkout', async () => {
      const { link, transactionId, url, token } = await shop.open()
      expect(String(link.orderCode)).to.match(new RegExp(`^${transactionId}\\d{6}$`))
      expect(link).to.include({ amount: 99_000, expiredAt: unixSeconds(addMs(shop.clock.now(), HOUR_MS)) })
      expect(link.description).to.equal(`PG${String(transactionId).slice(-7)}`)
      expect(url).to.equal(`https://pay.payos.vn/web/${link.id}`)
      expect(await sessions()).to.deep.equal([{ status: 'open', reference: String(link.orderCode) }])
      expect((await shop.choose(token)).body.data.redirect_url).to.equal(url)
      expect(shop.payos.links).to.have.length(1)
    })

    it('other currencies than VND are payment_method_unavailable', async () => {
      const answer = await shop.client.post('/api/v1/checkout-sessions', {
        ...PURCHASE,
        currency: 'USD',
        external_ref: 'user-1',
        payment_method: 'payos',
        success_url: 'https://shop.example/ok',
        cancel_url: 'https://shop.example/no',
      })
      expect(answer.status).to.equal(400)
      expect(answer.body.error.code).to.equal('payment_method_unavailable')
    })

    it('two clicks at once create one link', async () => {
      const token = tokenOf(await aCheckout(shop.service.ctx, shop.app, PURCHASE))
      const answers = await Promise.all(Array.from({ length: 6 }, () => shop.choose(token)))
      expect(new Set(answers.map(({ body }) => body.data.redirect_url)).size).to.equal(1)
      expect(shop.payos.links).to.have.length(1)
    })

    for (const [mode, links, why] of [
      ['down', 1, 'nothing reached it'],
      ['deaf', 1, 'the link that it made unheard is found by its order code and used'],
      ['missigned', 1, 'the link whose answer could not be believed is found by its order code and used'],
      ['error', 1, 'nothing was made'],
    ] as const) {
      it(`${mode}: 502 provider_error, and the payer can try again (${why})`, async () => {
        const token = tokenOf(await aCheckout(shop.service.ctx, shop.app, PURCHASE))
        shop.payos.mode = mode
        const refused = await shop.choose(token)
        expect(refused.status).to.equal(502)
        expect(refused.body.error.code).to.equal('provider_error')
        shop.payos.mode = 'up'
        const answer = await shop.choose(token)
        expect(answer.status, answer.text).to.equal(200)
        expect(shop.payos.links).to.have.length(links)
        expect(answer.body.data.redirect_url).to.equal(`https://pay.payos.vn/web/${shop.payos.links[0]!.id}`)
        expect(await sessions()).to.deep.equal([{ status: 'open', reference: String(shop.payos.links[0]!.orderCode) }])
      })
    }

    it('an order code that another installation used at the same merchant is left, and another one drawn', async () => {
      const { link, token } = await shop.open()
      const { db } = shop.service.ctx
      // As if the first link were another's: ours is still to be opened under the same code.
      await db.update(providerSessions, { status: 'open' }, { status: 'opening', url: null })
      Object.assign(link, { amount: 98_000 })
      const answer = await shop.choose(token)
      expect(answer.status, answer.text).to.equal(200)
      expect(shop.payos.links).to.have.length(2)
      expect(answer.body.data.redirect_url).not.to.include(link.id)
      expect((await sessions()).map(({ status }) => status)).to.deep.equal(['closed', 'open'])
    })

    it('credentials that are not valid any more are 502, and the log names none', async () => {
      await enableMethod(shop.service.ctx, 'tester', shop.app.app, 'payos', { ...PAYOS_KEYS, apiKey: 'revoked-key' })
      const token = tokenOf(await aCheckout(shop.service.ctx, shop.app, PURCHASE))
      expect((await shop.choose(token)).status).to.equal(502)
      expect(shop.service.ctx.logged.join('')).not.to.match(/revoked-key|checksum-1|client-1/)
    })
  })

  describe('notifications, POST /api/v1/webhooks/bank-transfer-provider', () => {
    it('a transfer of the whole amount is looked up at PayOS and completes', async () => {
      const { link, transactionId } = await shop.open()
      const answer = await shop.notify(link, shop.payos.transfer(link, 99_000))
      expect(answer.status).to.equal(200)
      expect(answer.body).to.deep.equal({ success: true, data: { status: 'processed' } })
      expect(shop.payos.calls.at(-1)).to.include({ method: 'GET', path: `/v2/payment-requests/${link.orderCode}` })
      expect(await shop.transaction(transactionId)).to.include({
        status: 'completed',
        amount_received: 99_000,
        provider_code: 'payos',
      })
      expect(await eventsTold()).to.deep.equal(['transaction.completed'])
      expect((await sessions())[0]!.status).to.equal('paid')
    })

    it('support finds it by what a receipt shows: the reference of the bank and the text of the transfer', async () => {
      const { link, transactionId } = await shop.open()
      await shop.notify(link, shop.payos.transfer(link, 99_000, 'FT26301123456'))
      const [payment] = await shop.service.ctx.db.all(payments, '')
      const found = async (text: string): Promise<string[]> =>
        (await find(shop.service.ctx, text)).matches.map(({ kind, id }) => `${kind} ${id}`)
      expect(await found('FT26301123456')).to.deep.equal([`payment ${payment!.id}`])
      expect(await found('ft26 3011 23456')).to.deep.equal([`payment ${payment!.id}`])
      expect(await found(`CSX7K2 ${link.description} CT tu 0123456789`)).to.deep.equal([`transaction ${transactionId}`])
      expect(await found(link.description)).to.deep.equal([`transaction ${transactionId}`])
    })

    it('the period starts when the transfer was made, in Vietnam time', async () => {
      const plan = await aPlan(shop.service.ctx, shop.app)
      const { link } = await shop.open({ mode: 'subscription', price_id: priceId(plan) })
      const transfer = shop.payos.transfer(link, 99_000)
      shop.clock.advance('30m')
      await shop.notify(link, transfer)
      const { body } = await shop.client.get('/api/v1/subscriptions/user-1')
      expect(body.data.current_period_end).to.equal('2026-04-01 10:00:00')
    })

    it('partial transfers add up, each counted once', async () => {
      const { link, transactionId } = await shop.open()
      const first = shop.payos.transfer(link, 50_000, 'FT1')
      expect((await shop.notify(link, first)).body.data.status).to.equal('underpaid')
      expect((await shop.notify(link, first)).body.data.status).to.equal('duplicate')
      expect(await shop.transaction(transactionId)).to.include({
        status: 'pending',
        amount_received: 50_000,
        flag_reason: 'underpaid',
      })
      const second = shop.payos.transfer(link, 49_000, 'FT2')
      expect((await shop.notify(link, second)).body.data.status).to.equal('processed')
      expect(await shop.transaction(transactionId)).to.include({
        status: 'completed',
        amount_received: 99_000,
        flagged: false,
      })
      expect((await shop.notify(link, second)).body.data.status).to.equal('duplicate')
    })

    it('once the link is paid and lists nothing, only what is not booked yet is booked', async () => {
      const { link, transactionId } = await shop.open()
      await shop.notify(link, shop.payos.transfer(link, 50_000, 'FT1'))
      const second = shop.payos.transfer(link, 49_000, 'FT2')
      link.listsNothing = true
      // The look-up after the first transfer may still have the session.
      await until(async () => {
        shop.clock.advance('2d')
        await reconcilePayments(shop.service.ctx, { all: true })
        return (await shop.transaction(transactionId)).status === 'completed'
      })
      expect((await shop.transaction(transactionId)).amount_received).to.equal(99_000)
      link.listsNothing = false
      expect((await shop.notify(link, second)).body.data.status).to.equal('already_completed')
      expect(await shop.transaction(transactionId)).to.include({ amount_received: 99_000, flagged: false })
    })

    it('once the link is paid, what PayOS counts beside the reported transfer is booked, too, though it lists nothing and did not report it', async () => {
      const { link, transactionId } = await shop.open()
      const first = shop.payos.transfer(link, 30_000)
      const second = shop.payos.transfer(link, 99_000)
      link.listsNothing = true
      expect((await shop.notify(link, second)).body.data.status).to.equal('processed')
      const received = { status: 'completed', amount_received: 129_000, flag_reason: 'duplicate_payment' }
      expect(await shop.transaction(transactionId)).to.include(received)
      link.listsNothing = false
      for (const transfer of [first, second])
        expect((await shop.notify(link, transfer)).body.data.status).to.equal('already_completed')
      expect(await shop.transaction(transactionId)).to.include(received)
    })

    it('a look-up and a notification at the same moment book the money of a link that lists nothing once', async () => {
      for (let round = 0; round < 5; round += 1) {
        const { link, transactionId } = await shop.open({ external_ref: `user-${round}` })
        const transfer = shop.payos.transfer(link, 99_000)
        link.listsNothing = true
        await Promise.all([reconcilePayments(shop.service.ctx, { all: true }), shop.notify(link, transfer)])
        expect(await shop.transaction(transactionId)).to.include({ amount_received: 99_000, flagged: false })
      }
    })

    it('money that arrives after the sum of a link that listed nothing was booked is booked, too', async () => {
      const { link, transactionId } = await shop.open()
      shop.payos.transfer(link, 99_000)
      link.listsNothing = true
      await reconcilePayments(shop.service.ctx, { all: true })
      link.listsNothing = false
      const second = shop.payos.transfer(link, 99_000)
      for (let time = 0; time < 2; time += 1)
        expect((await shop.notify(link, second)).body.data.status).to.equal('already_completed')
      expect(await shop.transaction(transactionId)).to.include({
        flag_reason: 'duplicate_payment',
        amount_received: 198_000,
      })
    })

    it('the page after a partial transfer offers PayOS for the rest, and no bank page, which the app does not have', async () => {
      const { link, token } = await shop.open()
      await shop.notify(link, shop.payos.transfer(link, 40_000))
      const page = await shop.service.call('GET', `/checkout/${token}`, { headers: { Accept: 'text/html' } })
      expect(page.text).to.include('value="payos"').and.not.include(`/checkout/${token}/bank`)
      expect((await shop.choose(token)).status).to.equal(200)
      expect(shop.payos.links.at(-1)!.amount).to.equal(59_000)
    })

    it('more than the amount completes', async () => {
      const { link, transactionId } = await shop.open()
      await shop.notify(link, shop.payos.transfer(link, 120_000))
      expect(await shop.transaction(transactionId)).to.include({ status: 'completed', amount_received: 120_000 })
    })

    it('a further transfer after completion is recorded and flagged duplicate_payment', async () => {
      const { link, transactionId } = await shop.open()
      await shop.notify(link, shop.payos.transfer(link, 99_000))
      const again = shop.payos.transfer(link, 99_000)
      expect((await shop.notify(link, again)).body.data.status).to.equal('already_completed')
      expect(await shop.transaction(transactionId)).to.include({
        flag_reason: 'duplicate_payment',
        amount_received: 198_000,
      })
    })

    it("a transfer after the link's end completes", async () => {
      const { link, transactionId } = await shop.open()
      shop.clock.advance('3d')
      expect((await shop.notify(link, shop.payos.transfer(link, 99_000))).body.data.status).to.equal('processed')
      expect((await shop.transaction(transactionId)).status).to.equal('completed')
    })

    it('a transfer that PayOS reports and does not list pays nothing, and is looked up again within a minute', async () => {
      const { link, transactionId } = await shop.open()
      const untrue = { reference: 'FT9', amount: 99_000, transactionDateTime: '2026-03-01 17:00:00' }
      const answer = await shop.notify(link, untrue)
      expect(answer.status).to.equal(200)
      expect(answer.body.data.status).to.equal('ignored')
      expect((await shop.transaction(transactionId)).status).to.equal('pending')
      const session = await shop.service.ctx.db.one(providerSessions, '')
      expect(session?.nextLookupAt).to.deep.equal(addMs(shop.clock.now(), 60_000))
    })

    it('a further transfer that PayOS does not list yet is looked up again within a minute, though it lists the first', async () => {
      const { link } = await shop.open()
      await shop.notify(link, shop.payos.transfer(link, 50_000))
      const late = { reference: 'FT9', amount: 49_000, transactionDateTime: '2026-03-01 17:00:00' }
      expect((await shop.notify(link, late)).status).to.equal(200)
      const session = await shop.service.ctx.db.one(providerSessions, '')
      expect(session?.nextLookupAt).to.deep.equal(addMs(shop.clock.now(), 60_000))
    })

    it('a transfer that PayOS does not list, of a session that is over, changes nothing, and operators see it', async () => {
      const { link, transactionId } = await shop.open()
      await shop.notify(link, shop.payos.transfer(link, 99_000))
      const late = { reference: 'FT9', amount: 99_000, transactionDateTime: '2026-03-01 17:05:00' }
      for (let time = 0; time < 2; time += 1)
        expect((await shop.notify(link, late)).body.data.status).to.equal('duplicate')
      expect(await shop.transaction(transactionId)).to.include({ amount_received: 99_000, flagged: false })
      const [note, ...others] = await notes()
      expect(note?.note).to.include(`PayOS reported ₫99,000 (FT9) for order ${link.orderCode}`)
      expect(others).to.deep.equal([])
      shop.payos.transfer(link, 99_000, 'FT9')
      expect((await shop.notify(link, late)).body.data.status).to.equal('already_completed')
      expect((await shop.transaction(transactionId)).amount_received).to.equal(198_000)
    })

    it('a transfer that PayOS lists under another reference is not asked for again', async () => {
      const { link, transactionId } = await shop.open()
      const transfer = shop.payos.transfer(link, 99_000, 'FT1')
      const nearly = transfer.transactionDateTime.replace(/\d\d$/, '40')
      const reports = [{}, { transactionDateTime: nearly }, { transactionDateTime: 'today' }]
      const statuses = []
      for (const report of reports)
        statuses.push((await shop.notify(link, { ...transfer, ...report, reference: 'TF-1' })).body.data?.status)
      expect(statuses).to.deep.equal(['processed', 'duplicate', 'duplicate'])
      expect(await shop.transaction(transactionId)).to.include({ amount_received: 99_000, flagged: false })
      expect(await notes()).to.deep.equal([])
    })

    it('what the notification itself claims counts for nothing: the amount is the one that PayOS lists', async () => {
      const { link, transactionId } = await shop.open()
      const small = shop.payos.transfer(link, 1000)
      expect((await shop.notify(link, small, { amount: 99_000 })).body.data.status).to.equal('underpaid')
      expect(await shop.transaction(transactionId)).to.include({ status: 'pending', amount_received: 1000 })
    })

    it('a transfer whose data.code is not 00 is ignored, whatever the outer code says', async () => {
      const { link, transactionId } = await shop.open()
      const transfer = shop.payos.transfer(link, 99_000)
      expect((await shop.notify(link, transfer, { code: '01' })).body.data.status).to.equal('ignored')
      expect((await shop.transaction(transactionId)).status).to.equal('pending')
    })

    it('an order at PayOS of another amount pays nothing, and operators see it', async () => {
      const { link, transactionId } = await shop.open()
      Object.assign(link, { amount: 1000 })
      const answer = await shop.notify(link, shop.payos.transfer(link, 1000))
      expect(answer.status).to.equal(200)
      expect(answer.body.data.status).to.equal('refused')
      expect(await shop.transaction(transactionId)).to.include({ status: 'pending', amount_received: 0 })
      expect(await notes()).to.have.length(1)
    })

    it('a transfer that nobody can identify pays nothing, and operators read why', async () => {
      const { link, transactionId } = await shop.open()
      const transfer = shop.payos.transfer(link, 99_000, '')
      expect((await shop.notify(link, transfer, { reference: 'FT1' })).body.data.status).to.equal('refused')
      expect(await shop.transaction(transactionId)).to.include({ status: 'pending', amount_received: 0 })
      expect((await notes()).map(({ note }) => note)).to.deep.equal([
        `order ${link.orderCode} at PayOS is described in a way that Paygate cannot read; nothing of it was applied`,
      ])
    })

    it("PayOS's registration test, an order that nobody opened, is answered 200", async () => {
      const link = { id: 'x', orderCode: 123, amount: 3000, description: 'VQRIO123', transfers: [] }
      const transfer = { reference: 'TF230204212323', amount: 3000, transactionDateTime: '2023-02-04 18:25:00' }
      const answer = await shop.send(payosNotification(PAYOS_KEYS.checksumKey, link as never, transfer))
      expect(answer.status).to.equal(200)
      expect(answer.body.data.status).to.equal('ignored')
      expect(shop.payos.calls).to.deep.equal([])
      // A bad signature is 400 whatever it is about.
      expect((await shop.send(payosNotification('another key', link as never, transfer))).status).to.equal(400)
    })

    it('a paid order that looks like ours and is not in the database, as after a restored backup, is kept for operators once', async () => {
      const other = await anApp(shop.service.ctx, { sandbox: false })
      await enableMethod(shop.service.ctx, 'tester', other.app, 'payos', { ...PAYOS_KEYS, checksumKey: 'checksum-2' })
      const lost = {
        id: 'x',
        orderCode: 912_000_123_456,
        amount: 99_000,
        description: 'CSX7K2 PG912000',
        transfers: [],
      }
      const transfer = { reference: 'TF1', amount: 99_000, transactionDateTime: '2026-02-04 18:25:00' }
      const report = async (link: object, key = 'checksum-2') =>
        (await shop.send(payosNotification(key, link as never, transfer))).body.data.status
      for (const reported of [lost, lost, { ...lost, description: 'PG912001' }])
        expect(await report(reported)).to.equal('ignored')
      const note = 'PayOS reported ₫99,000 (TF1) for order 912000123456, which this service did not open'
      expect((await notes()).map((each) => each.note)).to.deep.equal([note])
      expect(await report(lost, PAYOS_KEYS.checksumKey), 'another app hides no report').to.equal('ignored')
      expect((await notes()).map((each) => each.note)).to.deep.equal([note, note])
      expect(await shop.service.ctx.db.all(providerEvents, 'WHERE app_id = ?', [other.app.id])).to.have.lengthOf(1)
    })

    it('PayOS down while it is asked: 502, and the next notification completes', async () => {
      const { link, transactionId } = await shop.open()
      const transfer = shop.payos.transfer(link, 99_000)
      shop.payos.mode = 'down'
      expect((await shop.notify(link, transfer)).status).to.equal(502)
      expect((await shop.transaction(transactionId)).status).to.equal('pending')
      shop.payos.mode = 'up'
      expect((await shop.notify(link, transfer)).body.data.status).to.equal('processed')
    })

    it('an answer of PayOS that is wrongly signed is not believed', async () => {
      const { link, transactionId } = await shop.open()
      const transfer = shop.payos.transfer(link, 99_000)
      shop.payos.mode = 'missigned'
      expect((await shop.notify(link, transfer)).status).to.equal(502)
      expect((await shop.transaction(transactionId)).status).to.equal('pending')
    })

    it('a disabled method completes what it opened', async () => {
      const { link } = await shop.open()
      await shop.service.ctx.db.update(paymentMethods, { isEnabled: true }, { isEnabled: false })
      expect((await shop.notify(link, shop.payos.transfer(link, 99_000))).body.data.status).to.equal('processed')
    })

    it('40 copies at once are applied once', async () => {
      const { link } = await shop.open()
      const transfer = shop.payos.transfer(link, 99_000)
      const answers = await Promise.all(Array.from({ length: 40 }, () => shop.notify(link, transfer)))
      expect(new Set(answers.map(({ status }) => status))).to.deep.equal(new Set([200]))
      expect(answers.filter(({ body }) => body.data.status === 'processed')).to.have.length(1)
      expect(await eventsTold()).to.deep.equal(['transaction.completed'])
    })

    it('no name of a payer, account number or key gets into the log or the stored events', async () => {
      const { link } = await shop.open()
      await shop.notify(link, shop.payos.transfer(link, 99_000))
      const stored = JSON.stringify(await shop.service.ctx.db.all(providerEvents, ''))
      const log = shop.service.ctx.logged.join('')
      expect(stored + log).not.to.match(/NGUYEN VAN PAYER|0123456789|checksum-1|api-1/)
    })

    it('what is malformed or wrongly signed is 400, with one body for all', async () => {
      const { link, transactionId } = await shop.open()
      const transfer = shop.payos.transfer(link, 99_000)
      const good = payosNotification(PAYOS_KEYS.checksumKey, link, transfer)
      const signedAs = (data: object) => ({ ...good, data, signature: signOfData(PAYOS_KEYS.checksumKey, data) })
      const changed = (changes: object) => ({ ...good, data: { ...good.data, ...changes } })
      const { signature, ...unsigned } = good
      const cases: Record<string, unknown> = {
        'no signature': unsigned,
        'an empty signature': { ...good, signature: '' },
        'a number as signature': { ...good, signature: 1 },
        'a list as signature': { ...good, signature: [signature] },
        'a short signature': { ...good, signature: signature.slice(0, 63) },
        'an upper-case signature': { ...good, signature: signature.toUpperCase() },
        "another merchant's signature": { ...good, signature: signOfData('other-key', good.data) },
        'another amount': changed({ amount: 1 }),
        'another reference': changed({ reference: 'FT0' }),
        'a field more': changed({ more: 'x' }),
        'an order code as text': changed({ orderCode: String(link.orderCode) }),
        'an order code with a fraction': changed({ orderCode: 1.5 }),
        'a negative order code': changed({ orderCode: -1 }),
        'an order code that no number holds': changed({ orderCode: 2 ** 60 }),
        'no data': { ...good, data: undefined },
        'a list of lists, 15,000 deep': `{"signature":"${signature}","data":${JSON.stringify(good.data).slice(0, -1)},"x":${'['.repeat(15_000)}${']'.repeat(15_000)}}}`,
        'a list, rightly signed': signedAs({ ...good.data, list: [{ a: 1 }] }),
        'an object, rightly signed': signedAs({ ...good.data, more: { a: 1 } }),
        'data that is text': { ...good, data: 'x' },
        'an array': [],
        'no JSON': 'hello',
        'no body': '',
        'a byte-order mark': `\uFEFF${JSON.stringify(good)}`,
        'no UTF-8': Buffer.from([0x7b, 0xff, 0x7d]),
        'a body over 32 KB': filledTo(32 * 1024 + 1, good),
        'more than 100 fields, rightly signed': signedAs(withFields(good.data, 101)),
      }
      const bodies = new Set<string>()
      for (const [what, body] of Object.entries(cases)) {
        const answer = await shop.send(body)
        expect(answer.status, what).to.equal(400)
        bodies.add(JSON.stringify({ ...answer.body, error: { ...answer.body.error, request_id: '' } }))
      }
      expect(bodies.size).to.equal(1)
      expect((await shop.transaction(transactionId)).status).to.equal('pending')
    })
  })

  it('the largest genuine notification is taken: 32 KB with 100 fields', async () => {
    const { link, transactionId } = await shop.open()
    const good = payosNotification(PAYOS_KEYS.checksumKey, link, shop.payos.transfer(link, 99_000))
    const data = withFields(good.data, 100)
    const signature = signOfData(PAYOS_KEYS.checksumKey, data)
    const answer = await shop.send(filledTo(32 * 1024, { ...good, data, signature }))
    expect(answer.body.data).to.deep.equal({ status: 'processed' })
    expect((await shop.transaction(transactionId)).status).to.equal('completed')
  })

  describe('credentials that an operator gives', () => {
    const check = (changes: object = {}) =>
      payosCredentials.check(shop.service.ctx.config, { ...PAYOS_KEYS, ...changes })

    it('are tried at PayOS', async () => {
      expect((await check()).result).to.equal('ok')
      expect((await check({ apiKey: 'wrong' })).result).to.equal('refused')
    })

    it('are not checked while PayOS cannot be reached, and that is said', async () => {
      shop.payos.mode = 'down'
      expect((await check()).result).to.equal('unreachable')
    })
  })
})

/** The data with as many fields as given. */
function withFields(data: object, count: number): object {
  const more = count - Object.keys(data).length
  return { ...data, ...Object.fromEntries(Array.from({ length: more }, (_, index) => [`more${index}`, 'x'])) }
}

/** The JSON of a value, with as many bytes as given. */
function filledTo(bytes: number, value: object): string {
  const json = JSON.stringify(value)
  return json + ' '.repeat(bytes - Buffer.byteLength(json))
}
