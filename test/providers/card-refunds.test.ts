import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { cardCredentials } from '#providers/card/credentials.ts'
import { refundCardPayment } from '#providers/card/refund-payment.ts'
import { unixSeconds } from '#shared/time.ts'
import { inTransaction } from '#commands/transaction.ts'
import { listPayments, markPaymentRefunded, type Payment } from '#transactions/store.ts'
import { signedEvent } from '../support/stripe-peer.ts'
import { startCardShop, type CardShop, type OpenedCard } from './card-shop.ts'

describe('refunds of card payments', () => {
  let shop: CardShop
  beforeEach(async () => {
    shop = await startCardShop()
  })
  afterEach(() => shop.stop())

  async function paidCard(): Promise<{ opened: OpenedCard; payment: Payment }> {
    const opened = await shop.open()
    shop.stripe.pay(opened.session)
    await shop.notify(shop.event(opened.session))
    const [payment] = await listPayments(shop.service.ctx.db, opened.transactionId)
    return { opened, payment: payment! }
  }
  const failure = async (work: Promise<unknown>): Promise<any> => work.then(() => null).catch((error: unknown) => error)

  describe('made by us', () => {
    it('a refund goes through Stripe once, however often it is asked for', async () => {
      const { payment, opened } = await paidCard()
      const first = await refundCardPayment(shop.service.ctx, payment, 'refund-1')
      const again = await refundCardPayment(shop.service.ctx, payment, 'refund-1')
      expect(first.refundReference).to.match(/^re_/)
      expect(again).to.deep.equal(first)
      const calls = shop.stripe.calls.filter(({ method, path }) => method === 'POST' && path === '/v1/refunds')
      expect(calls[0]!.headers['idempotency-key']).to.match(/^refund-1-/)
      expect(calls[0]!.form).to.deep.equal({
        payment_intent: opened.session.payment_intent,
        metadata: { transaction_id: String(opened.transactionId), app_id: String(shop.first.app.app.id) },
      })
    })

    it('a refund that was made before under another key is found', async () => {
      const { payment } = await paidCard()
      const first = await refundCardPayment(shop.service.ctx, payment, 'refund-1')
      expect(await refundCardPayment(shop.service.ctx, payment, 'refund-2')).to.deep.equal(first)
    })

    it('Stripe down or refusing is provider_error, and the refund can be asked for again', async () => {
      const { payment } = await paidCard()
      shop.stripe.mode = 'down'
      expect((await failure(refundCardPayment(shop.service.ctx, payment, 'refund-1'))).code).to.equal('provider_error')
      shop.stripe.mode = 'error'
      expect((await failure(refundCardPayment(shop.service.ctx, payment, 'refund-1'))).code).to.equal('provider_error')
      shop.stripe.mode = 'up'
      // Stripe repeats its failure to the first key for a day.
      expect((await failure(refundCardPayment(shop.service.ctx, payment, 'refund-1'))).code).to.equal('provider_error')
      shop.clock.advance('1h')
      expect((await refundCardPayment(shop.service.ctx, payment, 'refund-1')).refundReference).to.match(/^re_/)
    }).timeout(120_000)

    it('a payment that is no card payment is not refunded here', async () => {
      const { payment } = await paidCard()
      const transfer = { ...payment, provider: 'payos' as const }
      expect((await failure(refundCardPayment(shop.service.ctx, transfer, 'x'))).code).to.equal('invalid_request')
    })
  })

  describe("made in Stripe's dashboard", () => {
    const charged = (charge: object) =>
      signedEvent(shop.first.webhookSecret, unixSeconds(shop.clock.now()), 'charge.refunded', charge)

    it('are noted once, whether told or listed; the transaction stays as it is', async () => {
      const { opened } = await paidCard()
      const event = charged(shop.stripe.refund(opened.session))
      expect((await shop.notify(event)).body.data.status).to.equal('noted')
      expect((await shop.notify(event)).status).to.equal(200)
      expect(await shop.refundsNoted()).to.equal(0)
      const notes = await shop.notes()
      expect(notes.map(({ outcome, note }) => ({ outcome, note }))).to.deep.equal([
        { outcome: 'noted', note: '19.99 USD of the card payment were refunded at Stripe; the period stays' },
      ])
      const { body } = await shop.first.client.get(`/api/v1/transactions/${opened.transactionId}`)
      expect(body.data).to.include({ status: 'completed', flagged: false })
    })

    it('are listed when nothing was told, each further part again', async () => {
      const { opened } = await paidCard()
      shop.stripe.refund(opened.session, 500)
      expect(await shop.refundsNoted()).to.equal(1)
      expect(await shop.refundsNoted()).to.equal(0)
      shop.stripe.refund(opened.session, 499)
      expect(await shop.refundsNoted()).to.equal(1)
      expect((await shop.notes()).map(({ note }) => note?.slice(0, 9))).to.deep.equal(['5.00 USD ', '9.99 USD '])
    })

    it('beyond one page of Stripe are all listed', async () => {
      for (let paid = 0; paid < 3; paid += 1) shop.stripe.refund((await paidCard()).opened.session)
      const busy = await paidCard()
      for (let part = 0; part < 110; part += 1) shop.stripe.refund(busy.opened.session, 1)
      expect(await shop.refundsNoted()).to.equal(4)
    })

    it('do not include ours', async () => {
      const { opened, payment } = await paidCard()
      const { refundReference } = await refundCardPayment(shop.service.ctx, payment, 'refund-1')
      await inTransaction(shop.service.ctx, (tx) => markPaymentRefunded(tx, payment.id, refundReference))
      expect(await shop.refundsNoted()).to.equal(0)
      expect((await shop.notify(charged(shop.stripe.refund(opened.session, 0)))).body.data.status).to.equal('ignored')
      expect(await shop.notes()).to.deep.equal([])
    })

    it("do not include another seller's charges, whatever they name", async () => {
      const { opened } = await paidCard()
      const charge = shop.stripe.refund(opened.session)
      const event = signedEvent(shop.second.webhookSecret, unixSeconds(shop.clock.now()), 'charge.refunded', {
        ...charge,
        metadata: { transaction_id: String(opened.transactionId) },
      })
      expect((await shop.notify(event)).body.data.status).to.equal('ignored')
      expect(await shop.notes()).to.deep.equal([])
    })

    it('are not asked for app by app while Stripe cannot be reached', async () => {
      await paidCard()
      shop.stripe.calls.length = 0
      shop.stripe.mode = 'down'
      expect(await shop.refundsNoted()).to.equal(0)
      expect(new Set(shop.stripe.calls.map(({ headers }) => headers.authorization)).size).to.equal(1)
    })

    it('of a seller whose credentials do not open do not keep the others from being listed', async () => {
      const { opened } = await paidCard()
      shop.stripe.refund(opened.session)
      const { db } = shop.service.ctx
      const ids = [shop.second.app.app.id, shop.first.app.app.id]
      await db.query(`UPDATE payment_methods SET credentials = 'v1.lost.x.y.z' WHERE app_id = ?`, [ids[0]])
      expect(await shop.refundsNoted()).to.equal(1)
    })
  })

  describe('credentials that an operator gives', () => {
    const check = (secretKey: string, webhookSecret = 'whsec_first') =>
      cardCredentials.check(shop.service.ctx.config, { secretKey, webhookSecret })

    it('are tried at Stripe', async () => {
      expect((await check('sk_test_first')).result).to.equal('ok')
      expect(await check('sk_test_wrong')).to.deep.equal({
        result: 'refused',
        message: 'Stripe does not know this secret key',
      })
    })

    it('that are another key are refused without asking', async () => {
      expect((await check('pk_test_first')).result).to.equal('refused')
      expect((await check('sk_test_first', 'sk_test_first')).message).to.include('whsec_')
      expect(shop.stripe.calls).to.deep.equal([])
    })

    it('are not checked while Stripe cannot be reached, and that is said', async () => {
      shop.stripe.mode = 'down'
      expect((await check('sk_test_first')).result).to.equal('unreachable')
    })
  })
})
