import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { cardAccounts } from '#providers/card/accounts.ts'
import { cardCredentials } from '#providers/card/credentials.ts'
import { noteRefunds } from '#providers/card/note-refunds.ts'
import { reconcilePayments } from '#providers/engine/reconcile-payments.ts'
import { closePayment } from '#decisions/close-payment.ts'
import { refundPayment } from '#decisions/refund-payment.ts'
import { possibleResolutions } from '#decisions/possible-resolutions.ts'
import { previewResolution, resolveTransaction } from '#decisions/resolve-transaction.ts'
import { perform } from '#commands/perform.ts'
import { inTransaction } from '#commands/transaction.ts'
import { rehearsing, type Context } from '#context.ts'
import { listRefundsOfTransaction, payments, refunds } from '#payments/store.ts'
import { listPaymentRows } from '#payments/lists/store.ts'
import { providerAccounts } from '#providers/accounts/store.ts'
import { unixSeconds } from '#shared/time.ts'
import { recordRefundAnswer } from '#transactions/record-refund-answer.ts'
import { verifyLedger } from '#ledger/verify-ledger.ts'
import { getTransactionTimeline } from '#support/transaction-timeline.ts'
import { viewEndUser } from '#support/view-end-user.ts'
import { transferred } from '../support/factories.ts'
import { unallocatedMoney } from '../support/review.ts'
import { signedEvent, startStripePeer } from '../support/stripe-peer.ts'
import { startCardShop, type CardShop, type OpenedCard } from './card-shop.ts'
import { operator } from '#commands/caller.ts'

describe('refunds of card payments', () => {
  let shop: CardShop
  beforeEach(async () => {
    shop = await startCardShop()
  })
  afterEach(() => shop.stop())

  async function paidCard(): Promise<OpenedCard> {
    const opened = await shop.open()
    shop.stripe.pay(opened.session)
    await shop.notify(shop.event(opened.session))
    return opened
  }
  const failure = async (work: Promise<unknown>): Promise<Error & { code?: string }> =>
    work.then(
      () => expect.fail('it did not fail'),
      (error: unknown) => error as Error,
    )
  const refund = (transactionId: number, amount?: number) =>
    resolveTransaction(shop.service.ctx, operator('mai'), {
      transactionId,
      action: 'refund',
      note: 'asked by phone',
      ...(amount === undefined ? {} : { amount }),
    })
  const transaction = async (id: number) => (await shop.first.client.get(`/api/v1/transactions/${id}`)).body.data
  const refundsOf = async (id: number) =>
    (await listRefundsOfTransaction(shop.service.ctx.db, id)).map(({ amount, status }) => [amount, status])
  const posts = () => shop.stripe.calls.filter(({ method, path }) => method === 'POST' && path === '/v1/refunds')
  const waiting = async () =>
    (await listPaymentRows(shop.service.ctx.db, { appId: null, waiting: true, after: null, limit: 10 })).map(
      (payment) => [payment.waiting, payment.flagReason],
    )
  const reconcile = async () => (await reconcilePayments(shop.service.ctx, { all: true })).refundsEnded
  const notify = (type: string, object: object) =>
    shop.notify(signedEvent(shop.first.webhookSecret, unixSeconds(shop.clock.now()), type, object))
  const ledger = async () => (await verifyLedger(shop.service.ctx, null)).faults

  describe('made by us', () => {
    it('goes through Stripe under the key of its row, and ends the transaction as refunded', async () => {
      const { transactionId, session } = await paidCard()
      expect(await refund(transactionId)).to.include({ status: 'refunded', amountReceived: 1999, amountRefunded: 1999 })
      expect(posts()).to.have.lengthOf(1)
      const [call] = posts()
      const [row] = await listRefundsOfTransaction(shop.service.ctx.db, transactionId)
      expect(call!.headers['idempotency-key']).to.equal(`paygate-refund-${row!.id}`)
      expect(call!.form).to.deep.equal({
        payment_intent: session.payment_intent,
        amount: 1999,
        metadata: {
          refund_id: String(row!.id),
          transaction_id: String(transactionId),
          app_id: String(shop.first.app.app.id),
        },
      })
      expect(row).to.include({ status: 'succeeded', reference: shop.stripe.refunds[0]!.id, actor: 'mai' })
      expect((await failure(refund(transactionId))).message).to.include('all of it was refunded')
      expect(await ledger()).to.deep.equal([])
    })

    it('may be of a part, and of another part, and never of more than was received', async () => {
      const { transactionId } = await paidCard()
      expect(await refund(transactionId, 500)).to.include({ status: 'completed', amountRefunded: 500 })
      expect(await transaction(transactionId)).to.include({ amount_received: 1999, amount_refunded: 500 })
      expect((await failure(refund(transactionId, 1500))).message).to.include('only $14.99 is left')
      expect(await refund(transactionId, 1499)).to.include({ status: 'refunded', amountRefunded: 1999 })
      expect(await refundsOf(transactionId)).to.deep.equal([
        [500, 'succeeded'],
        [1499, 'succeeded'],
      ])
      expect(shop.stripe.refunds.map(({ amount }) => amount)).to.deep.equal([1499, 500])
      expect(await ledger()).to.deep.equal([])
    })

    it('is shown as another one where a refund of the same amount, of which the answer was lost, is recorded by now', async () => {
      const { transactionId } = await paidCard()
      const terms = { transactionId, action: 'refund', amount: 500 } as const
      const shown = async () => (await previewResolution(shop.service.ctx, operator('mai'), terms)).effects
      expect(await shown()).to.deep.equal(['Stripe refunds $5.00 to the card'])
      shop.stripe.mode = 'deaf'
      await failure(refund(transactionId, 500))
      shop.stripe.mode = 'up'
      await shop.refundsNoted()
      expect(await refundsOf(transactionId)).to.deep.equal([[500, 'succeeded']])
      expect((await shown())[0]).to.match(/^refund \d+ of the same amount was ordered before: this is another one$/)
    })

    it('that two operators ask for at once is made once', async () => {
      const { transactionId } = await paidCard()
      await Promise.allSettled([refund(transactionId), refund(transactionId)])
      expect(shop.stripe.refunds).to.have.lengthOf(1)
      expect(await refundsOf(transactionId)).to.deep.equal([[1999, 'succeeded']])
    })

    it('whose answer was lost stays pending, and is found at Stripe rather than made again', async () => {
      const { transactionId } = await paidCard()
      shop.stripe.mode = 'deaf'
      expect((await failure(refund(transactionId))).message).to.include('stays pending')
      expect(await transaction(transactionId)).to.include({ status: 'completed', amount_refunded: 0 })
      expect(await refundsOf(transactionId)).to.deep.equal([[1999, 'pending']])
      shop.stripe.mode = 'up'
      shop.clock.advance('2d')
      expect(await reconcile()).to.equal(1)
      expect(await refundsOf(transactionId)).to.deep.equal([[1999, 'succeeded']])
      expect(await transaction(transactionId)).to.include({ status: 'refunded', amount_refunded: 1999 })
      expect(shop.stripe.refunds).to.have.lengthOf(1)
      expect(await ledger()).to.deep.equal([])
    })

    it('that Stripe could not be asked for goes on when the same command is given again', async () => {
      const { transactionId } = await paidCard()
      shop.stripe.mode = 'down'
      expect((await failure(refund(transactionId))).code).to.equal('provider_error')
      shop.stripe.mode = 'error'
      expect((await failure(refund(transactionId))).code).to.equal('provider_error')
      shop.stripe.mode = 'up'
      const again = { transactionId, action: 'refund' } as const
      const { effects } = await previewResolution(shop.service.ctx, operator('mai'), again)
      expect(effects.join()).to.match(/^refund \d+ of \$19\.99, which the provider never answered, is sent again$/)
      expect(await refund(transactionId)).to.include({ status: 'refunded' })
      expect(shop.stripe.refunds).to.have.lengthOf(1)
    })

    it('whose answer was lost is not given up if Stripe refuses to be asked for it, so that it is made once', async () => {
      const { transactionId } = await paidCard()
      shop.stripe.mode = 'deaf'
      await failure(refund(transactionId))
      shop.stripe.mode = 'blind'
      expect(await reconcile()).to.equal(0)
      expect(await refundsOf(transactionId)).to.deep.equal([[1999, 'pending']])
      shop.stripe.mode = 'up'
      expect(await reconcile()).to.equal(1)
      expect(await refundsOf(transactionId)).to.deep.equal([[1999, 'succeeded']])
      expect(shop.stripe.refunds).to.have.lengthOf(1)
      expect(await ledger()).to.deep.equal([])
    })

    it('of money that is booked for nothing is made once, too, however often the same command is given', async () => {
      const { transactionId } = await paidCard()
      await refund(transactionId)
      await notify(
        'refund.failed',
        shop.stripe.endRefund(shop.stripe.refunds[0]!, 'failed', 'expired_or_canceled_card'),
      )
      const { paymentId } = (await listRefundsOfTransaction(shop.service.ctx.db, transactionId))[0]!
      const again = (amount?: number, ctx: Context = shop.service.ctx) =>
        refundPayment(ctx, operator('mai'), { payment_id: paymentId, note: 'again', ...(amount && { amount }) })
      for (const mode of ['down', 'deaf'] as const) {
        shop.stripe.mode = mode
        expect((await failure(again(500))).message).to.include('stays pending')
      }
      shop.stripe.mode = 'deaf'
      expect((await failure(again())).message).to.include('stays pending')
      shop.stripe.mode = 'up'
      const dry = rehearsing(shop.service.ctx)
      const { id } = await again(500, dry)
      expect(dry.rehearsal.changes.map(({ subject, after }) => ({ subject, after }))).to.deep.equal([
        { subject: `refund ${id}`, after: { status: 'sent again' } },
      ])
      expect(await again(), 'the rest').to.include({ amount: 1499, status: 'succeeded' })
      expect(await again(500)).to.include({ amount: 500, status: 'succeeded' })
      expect(shop.stripe.refunds.map(({ amount, status }) => [amount, status])).to.deep.equal([
        [500, 'succeeded'],
        [1499, 'succeeded'],
        [1999, 'failed'],
      ])
      expect(await ledger()).to.deep.equal([])
    })

    it('that Stripe has no time for (429) stays pending, and is made later', async () => {
      const { transactionId } = await paidCard()
      shop.stripe.mode = 'busy'
      expect((await failure(refund(transactionId))).message).to.include('stays pending')
      expect(await refundsOf(transactionId)).to.deep.equal([[1999, 'pending']])
      shop.stripe.mode = 'up'
      expect(await reconcile()).to.equal(1)
      expect(await transaction(transactionId)).to.include({ status: 'refunded' })
      expect(shop.stripe.refunds).to.have.lengthOf(1)
    })

    it('that was given up with its credentials and turns out to have been made is in the books', async () => {
      const { transactionId } = await paidCard()
      shop.stripe.mode = 'deaf'
      await failure(refund(transactionId))
      shop.stripe.mode = 'up'
      const { ctx } = shop.service
      await ctx.db.update(payments, { provider: 'stripe' }, { providerAccountId: null })
      const { refundsEnded, refundsNoted } = await reconcilePayments(ctx, { all: true })
      expect([refundsEnded, refundsNoted]).to.deep.equal([1, 1])
      const [given] = await listRefundsOfTransaction(ctx.db, transactionId)
      expect(given!.failure).to.include('an earlier request may have made it: look for it at Stripe')
      expect(await refundsOf(transactionId)).to.deep.equal([
        [1999, 'failed'],
        [1999, 'succeeded'],
      ])
      expect((await failure(refund(transactionId))).message).to.include('all of it was refunded')
      expect(await ledger()).to.deep.equal([])
    })

    it('that Stripe refuses leaves the transaction as it was', async () => {
      const { transactionId, session } = await paidCard()
      const before = await transaction(transactionId)
      shop.stripe.refund(session, 1000)
      const error = await failure(refund(transactionId))
      expect(error.code).to.equal('provider_error')
      expect(error.message).to.include('was refused')
      expect(await transaction(transactionId)).to.deep.equal(before)
      expect(await refundsOf(transactionId)).to.deep.equal([[1999, 'failed']])
      expect(await waiting()).to.deep.equal([])
      expect(await ledger()).to.deep.equal([])
    })

    it('that is under way is shown as pending, and a look-up or an event ends it', async () => {
      for (const how of ['look-up', 'event'] as const) {
        shop.stripe.refundStatus = 'pending'
        const { transactionId } = await paidCard()
        expect(await refund(transactionId), how).to.include({ status: 'completed', amountRefunded: 1999 })
        expect(await refundsOf(transactionId), how).to.deep.equal([[1999, 'pending']])
        expect(await reconcile(), how).to.equal(0)
        const object = shop.stripe.endRefund(shop.stripe.refunds[0]!, 'succeeded')
        if (how === 'look-up') expect(await reconcile()).to.equal(1)
        else expect((await notify('refund.updated', object)).body.data.status).to.equal('ignored')
        expect(await refundsOf(transactionId), how).to.deep.equal([[1999, 'succeeded']])
        expect(await transaction(transactionId), how).to.include({ status: 'refunded' })
      }
      expect(await ledger()).to.deep.equal([])
    })

    it('that fails later puts the money back as unapplied, also after it had succeeded', async () => {
      for (const status of ['pending', 'succeeded'] as const) {
        shop.stripe.refundStatus = status
        const { transactionId } = await paidCard()
        await refund(transactionId)
        const object = shop.stripe.endRefund(shop.stripe.refunds[0]!, 'failed', 'expired_or_canceled_card')
        expect((await notify('refund.failed', object)).body.data.status).to.equal('noted')
        expect(await refundsOf(transactionId)).to.deep.equal([[1999, 'failed']])
        expect(await transaction(transactionId)).to.include({ amount_received: 0 })
      }
      expect(await waiting()).to.deep.equal([
        [1999, null],
        [1999, null],
      ])
      expect(await ledger()).to.deep.equal([])
    })

    it('that fails later is the next step on the screen about the end user, until its money is refunded again or closed', async () => {
      const { transactionId } = await paidCard()
      const steps = async () =>
        (await viewEndUser(shop.service.ctx, shop.first.app.app.id, 'user-1')).next_steps.map(({ command }) => command)
      await refund(transactionId)
      expect(await steps()).to.deep.equal([])
      await notify(
        'refund.failed',
        shop.stripe.endRefund(shop.stripe.refunds[0]!, 'failed', 'expired_or_canceled_card'),
      )
      const { paymentId } = (await listRefundsOfTransaction(shop.service.ctx.db, transactionId))[0]!
      expect(await steps()).to.deep.equal([`billing-cli payment show ${paymentId}`])
      await refundPayment(shop.service.ctx, operator('mai'), { payment_id: paymentId, amount: 999, note: 'again' })
      expect(await steps()).to.deep.equal([`billing-cli payment show ${paymentId}`])
      const rest = { payment_id: paymentId, note: 'sent by post' }
      await perform(shop.service.ctx, operator('mai'), closePayment, rest, null)
      expect(await steps()).to.deep.equal([])
    })

    it('that fails weeks later is learned from Stripe’s list, if the event is lost', async () => {
      const { transactionId } = await paidCard()
      await refund(transactionId)
      shop.clock.advance('30d')
      expect(await shop.refundsNoted()).to.equal(0)
      shop.stripe.endRefund(shop.stripe.refunds[0]!, 'failed', 'expired_or_canceled_card')
      expect(await shop.refundsNoted()).to.equal(1)
      expect(await refundsOf(transactionId)).to.deep.equal([[1999, 'failed']])
      expect(await waiting()).to.deep.equal([[1999, null]])
      expect(await ledger()).to.deep.equal([])
    })

    it('that fails later is made again by payment refund, which transaction resolve names while only its money is left', async () => {
      const { transactionId } = await paidCard()
      await refund(transactionId, 500)
      await refund(transactionId)
      const [part, rest] = shop.stripe.refunds
      await notify('refund.failed', shop.stripe.endRefund(rest!, 'failed', 'expired_or_canceled_card'))
      const { paymentId } = (await listRefundsOfTransaction(shop.service.ctx.db, transactionId))[0]!
      const named = `a refund of it failed, and the money waits outside the transaction: refund it by payment refund ${paymentId}`
      expect((await failure(refund(transactionId))).message).to.equal(`transaction ${transactionId}: ${named}`)
      expect((await failure(possibleResolutions(shop.service.ctx, transactionId))).message).to.include(
        `refund: ${named}`,
      )
      await notify('refund.failed', shop.stripe.endRefund(part!, 'failed', 'expired_or_canceled_card'))
      expect((await failure(refund(transactionId))).message).to.include(named)
      await refundPayment(shop.service.ctx, operator('mai'), { payment_id: paymentId, note: 'again' })
      expect(await refundsOf(transactionId)).to.deep.equal([
        [500, 'failed'],
        [1499, 'failed'],
      ])
      expect(posts().map(({ form }) => form)).to.have.nested.property('[2].amount', 1999)
      const { timeline } = await getTransactionTimeline(shop.service.ctx, transactionId)
      const made = timeline.filter(({ text }) => /^refund .* succeeded/.test(text)).map(({ text }) => text)
      expect(made).to.have.lengthOf(1)
      expect(made[0]).to.include(`$19.99 of payment ${paymentId} by stripe`).and.to.include('by mai ("again")')
      expect((await failure(refund(transactionId))).message).to.include('no money is left to be refunded')
    })
  })

  it('that is reported as made before Stripe’s answer to the order arrives stays made', async () => {
    const { transactionId } = await paidCard()
    shop.stripe.mode = 'deaf'
    await failure(refund(transactionId))
    const { id } = (await listRefundsOfTransaction(shop.service.ctx.db, transactionId))[0]!
    const record = (status: 'succeeded' | 'pending') =>
      inTransaction(shop.service.ctx, (tx) => recordRefundAnswer(tx, id, { status, reference: 're_1', failure: null }))
    await record('succeeded')
    await record('pending')
    expect(await refundsOf(transactionId)).to.deep.equal([[1999, 'succeeded']])
    expect(await ledger()).to.deep.equal([])
  })

  it('that failed stays failed, whatever an answer that was under way says', async () => {
    const { transactionId } = await paidCard()
    await refund(transactionId)
    const { id } = (await listRefundsOfTransaction(shop.service.ctx.db, transactionId))[0]!
    for (const status of ['failed', 'succeeded', 'pending'] as const) {
      const answer = { status, reference: shop.stripe.refunds[0]!.id, failure: null }
      await inTransaction(shop.service.ctx, (tx) => recordRefundAnswer(tx, id, answer))
      expect(await refundsOf(transactionId), status).to.deep.equal([[1999, 'failed']])
    }
    expect(await waiting()).to.deep.equal([[1999, null]])
    expect(await ledger()).to.deep.equal([])
  })

  it('that Stripe refuses gives a payment of a part its money and its flag back, and completes it if that is enough', async () => {
    const { ctx } = shop.service
    const { id: providerAccountId } = (await cardAccounts.current(ctx, shop.first.app.app.id))!
    for (const [meanwhile, status, flag_reason] of [
      [0, 'pending', 'underpaid'],
      [1000, 'completed', null],
      [1999, 'completed', 'duplicate_payment'],
    ] as const) {
      shop.stripe.mode = 'up'
      const { transactionId } = await shop.open()
      const part = {
        provider: 'stripe',
        providerAccountId,
        reference: `cs_part_${meanwhile}`,
        currency: 'USD',
      } as const
      await transferred(ctx, transactionId, 999, part)
      shop.stripe.mode = 'deaf'
      await failure(refund(transactionId))
      if (meanwhile > 0) await transferred(ctx, transactionId, meanwhile, { currency: 'USD' })
      const { id } = (await listRefundsOfTransaction(ctx.db, transactionId))[0]!
      const refusal = { status: 'failed', reference: null, failure: 'declined' } as const
      await inTransaction(ctx, (tx) => recordRefundAnswer(tx, id, refusal))
      expect(await transaction(transactionId), String(meanwhile)).to.include({ status, flag_reason })
    }
    expect(await waiting()).to.deep.equal([
      [999, 'duplicate_payment'],
      [999, 'underpaid'],
    ])
    expect(await ledger()).to.deep.equal([])
  })

  it('of money that is booked for nothing may be answered by Stripe and reported at the same moment', async () => {
    const ctx = shop.service.ctx
    const paymentId = await unallocatedMoney(ctx, shop.first.app, 70_000)
    const order = { payment_id: paymentId, reference: 'FT-1', note: 'sent by mistake' }
    const { id } = await refundPayment(ctx, operator('mai'), order)
    await ctx.db.update(refunds, { id }, { status: 'pending', endedAt: null })
    const answer = { status: 'succeeded', reference: 'FT-1', failure: null } as const
    const record = () => inTransaction(ctx, (tx) => recordRefundAnswer(tx, id, answer))
    const recorded = await Promise.all([record(), record(), record(), record()])
    expect(recorded.map(({ status }) => status)).to.deep.equal(Array(4).fill('succeeded'))
  })

  it('of money that came by card for a payment whose transfer was refunded manually goes through Stripe', async () => {
    const { transactionId, session } = await shop.open()
    await transferred(shop.service.ctx, transactionId, 900, { reference: 'FT-1', currency: 'USD' })
    const byHand = { transactionId, action: 'refund', note: 'wanted back', reference: 'FT-BACK' } as const
    await resolveTransaction(shop.service.ctx, operator('mai'), byHand)
    shop.stripe.pay(session)
    await shop.notify(shop.event(session))
    expect(await transaction(transactionId)).to.include({ status: 'refunded', flag_reason: 'duplicate_payment' })
    expect(await waiting()).to.deep.equal([[1999, 'duplicate_payment']])
    await refund(transactionId)
    expect(posts().map(({ form }) => form)).to.have.nested.property('[0].amount', 1999)
    expect(await refundsOf(transactionId)).to.deep.equal([
      [900, 'succeeded'],
      [1999, 'succeeded'],
    ])
    expect(await waiting()).to.deep.equal([])
    expect(await ledger()).to.deep.equal([])
  })

  describe("made in Stripe's dashboard", () => {
    const charged = (charge: object) =>
      signedEvent(shop.first.webhookSecret, unixSeconds(shop.clock.now()), 'charge.refunded', charge)

    it('are noted once, whether reported or listed; the transaction stays as it is', async () => {
      const { session, transactionId } = await paidCard()
      const event = charged(shop.stripe.refund(session))
      expect((await shop.notify(event)).body.data.status).to.equal('noted')
      expect((await shop.notify(event)).body.data.status).to.equal('ignored')
      expect(await shop.refundsNoted()).to.equal(0)
      const notes = await shop.notes()
      expect(notes.map(({ outcome, note }) => ({ outcome, note }))).to.deep.equal([
        { outcome: 'noted', note: '$19.99 of the card payment was refunded at Stripe; the period stays' },
      ])
      expect(await transaction(transactionId)).to.include({ status: 'completed', flagged: false })
    })

    it('count for the payment that they refund, whichever refund of ours the seller names in their metadata', async () => {
      const [ordered, { session, transactionId }] = [await paidCard(), await paidCard()]
      shop.stripe.mode = 'deaf'
      await failure(refund(ordered.transactionId))
      shop.stripe.mode = 'up'
      const charge = shop.stripe.refund(session, 500)
      const [ours] = await listRefundsOfTransaction(shop.service.ctx.db, ordered.transactionId)
      Object.assign(shop.stripe.refunds[0]!.metadata, { refund_id: String(ours!.id) })
      expect((await shop.notify(charged(charge))).body.data.status).to.equal('noted')
      expect(await refundsOf(transactionId)).to.deep.equal([[500, 'succeeded']])
      expect(await refundsOf(ordered.transactionId)).to.deep.equal([[1999, 'pending']])
      expect(await ledger()).to.deep.equal([])
    })

    it('that are under way at first leave the transaction as it is when they succeed, too', async () => {
      const { session, transactionId } = await paidCard()
      const charge = shop.stripe.refund(session)
      shop.stripe.endRefund(shop.stripe.refunds[0]!, 'pending')
      await shop.notify(charged(charge))
      const [underWay] = await shop.notes()
      expect(underWay!.note).to.equal('$19.99 of the card payment is being refunded at Stripe; the period stays')
      expect(await refundsOf(transactionId)).to.deep.equal([[1999, 'pending']])
      await notify('refund.updated', shop.stripe.endRefund(shop.stripe.refunds[0]!, 'succeeded'))
      expect(await refundsOf(transactionId)).to.deep.equal([[1999, 'succeeded']])
      expect(await transaction(transactionId)).to.include({ status: 'completed', flagged: false })
      expect(await ledger()).to.deep.equal([])
    })

    it('become rows with their amount, each part of a charge its own, so that no more is refunded here', async () => {
      const { session, transactionId } = await paidCard()
      shop.stripe.refund(session, 500)
      expect(await shop.refundsNoted()).to.equal(1)
      expect(await shop.refundsNoted()).to.equal(0)
      await shop.notify(charged(shop.stripe.refund(session, 499)))
      expect(await refundsOf(transactionId)).to.deep.equal([
        [500, 'succeeded'],
        [499, 'succeeded'],
      ])
      expect((await shop.notes()).map(({ note }) => note?.slice(0, 9))).to.deep.equal(['$5.00 of ', '$4.99 of '])
      expect(await refund(transactionId)).to.include({ amountRefunded: 1999, status: 'refunded' })
      expect(await refundsOf(transactionId)).to.have.lengthOf(3)
      expect(await ledger()).to.deep.equal([])
    })

    it('are recorded and noted, whichever of the two fails at first', async () => {
      for (const failing of [1, 2, 3, 4]) {
        const { session, transactionId } = await paidCard()
        shop.stripe.refund(session)
        let calls = 0
        const clock = {
          now() {
            calls += 1
            // The first call lists the accounts.
            if (calls === failing + 1) throw new Error('the database is gone')
            return shop.clock.now()
          },
        }
        await noteRefunds({ ...shop.service.ctx, clock })
        await shop.refundsNoted()
        expect(await refundsOf(transactionId)).to.deep.equal([[1999, 'succeeded']])
        expect(await shop.notes(), `call ${failing}`).to.have.lengthOf(failing)
      }
    })

    it('are recorded with all their money, though one of ours that Stripe never made was to take a part of it', async () => {
      const { session, transactionId } = await paidCard()
      shop.stripe.mode = 'down'
      await failure(refund(transactionId, 500))
      shop.stripe.mode = 'up'
      await shop.notify(charged(shop.stripe.refund(session)))
      await reconcile()
      await shop.refundsNoted()
      expect(await refundsOf(transactionId)).to.deep.equal([
        [500, 'failed'],
        [1999, 'succeeded'],
      ])
      expect(await transaction(transactionId)).to.include({ amount_refunded: 1999 })
      expect(await shop.notes()).to.have.lengthOf(1)
      expect(await ledger()).to.deep.equal([])
    })

    it('are recorded with all their money, though nobody knew yet that one of ours of a part of it had failed', async () => {
      for (const how of ['listing', 'event'] as const) {
        const { session, transactionId } = await paidCard()
        await refund(transactionId, 500)
        shop.stripe.endRefund(shop.stripe.refunds[0]!, 'failed', 'expired_or_canceled_card')
        const charge = shop.stripe.refund(session)
        if (how === 'event') await shop.notify(charged(charge))
        else await shop.refundsNoted()
        expect(await refundsOf(transactionId), how).to.deep.equal([
          [500, 'failed'],
          [1999, 'succeeded'],
        ])
        expect(await waiting(), how).to.deep.equal([])
        expect(await ledger()).to.deep.equal([])
      }
    })

    it('that fail give the money back', async () => {
      const { session } = await paidCard()
      await shop.notify(charged(shop.stripe.refund(session, 500)))
      const object = shop.stripe.endRefund(shop.stripe.refunds[0]!, 'failed')
      await notify('charge.refund.updated', object)
      expect(await waiting()).to.deep.equal([[500, null]])
      expect(await ledger()).to.deep.equal([])
    })

    it('of a payment from before its charge was kept are found by the charge’s own metadata', async () => {
      const { session, transactionId } = await paidCard()
      await shop.service.ctx.db.update(payments, { provider: 'stripe' }, { chargeReference: null })
      expect((await shop.notify(charged(shop.stripe.refund(session, 500)))).body.data.status).to.equal('noted')
      expect(await refundsOf(transactionId)).to.deep.equal([[500, 'succeeded']])
    })

    it('beyond one page of Stripe are all listed', async () => {
      for (let paid = 0; paid < 3; paid += 1) shop.stripe.refund((await paidCard()).session)
      const busy = await paidCard()
      for (let part = 0; part < 110; part += 1) shop.stripe.refund(busy.session, 1)
      expect(await shop.refundsNoted()).to.equal(113)
    })

    it('do not include ours', async () => {
      const { session, transactionId } = await paidCard()
      await refund(transactionId)
      expect(await shop.refundsNoted()).to.equal(0)
      expect((await shop.notify(charged(shop.stripe.refund(session, 0)))).body.data.status).to.equal('ignored')
      expect(await shop.notes()).to.deep.equal([])
    })

    it('do not include ours of one of two payments of a transaction', async () => {
      const { transactionId, token, session: first } = await shop.open()
      shop.clock.advance('59m')
      await shop.choose(token)
      const second = shop.stripe.sessions.at(-1)!
      expect(second.id).to.not.equal(first.id)
      for (const session of [first, second]) {
        shop.stripe.pay(session)
        await shop.notify(shop.event(session))
      }
      expect(await transaction(transactionId)).to.include({ flag_reason: 'duplicate_payment' })
      await refund(transactionId)
      expect(await transaction(transactionId)).to.include({ status: 'completed', flagged: false })
      expect(await refundsOf(transactionId)).to.deep.equal([[1999, 'succeeded']])
      expect(await shop.refundsNoted()).to.equal(0)
      expect(await shop.notes()).to.deep.equal([])
      expect(await ledger()).to.deep.equal([])
    })

    it('do not include ours if the event comes before the answer', async () => {
      const { transactionId } = await paidCard()
      shop.stripe.mode = 'deaf'
      await failure(refund(transactionId))
      shop.stripe.mode = 'up'
      await notify('refund.created', { ...shop.stripe.endRefund(shop.stripe.refunds[0]!, 'succeeded') })
      expect(await refundsOf(transactionId)).to.deep.equal([[1999, 'succeeded']])
      expect(await shop.notes()).to.deep.equal([])
    })

    it("do not include another seller's charges, whatever they name", async () => {
      const { session, transactionId } = await paidCard()
      const charge = shop.stripe.refund(session)
      const event = signedEvent(shop.second.webhookSecret, unixSeconds(shop.clock.now()), 'charge.refunded', {
        ...charge,
        metadata: { transaction_id: String(transactionId) },
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
      const { session } = await paidCard()
      shop.stripe.refund(session)
      const { db } = shop.service.ctx
      const ids = [shop.second.app.app.id, shop.first.app.app.id]
      await db.update(providerAccounts, { appId: ids[0]! }, { credentials: 'v1.lost.x.y.z' })
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

    it('are called test keys if they are, since a live app that has them lets anybody pay with a test card', async () => {
      const restricted = await startStripePeer(shop.clock, ['rk_test_1', 'sk_live_1'])
      const messageOf = async (secretKey: string): Promise<string> => {
        const config = { ...shop.service.ctx.config, stripeApiBase: restricted.base }
        return (await cardCredentials.check(config, { secretKey, webhookSecret: 'whsec_1' })).message
      }
      try {
        expect(await messageOf('rk_test_1'))
          .to.include('accepts')
          .and.include('a test key')
        expect(await messageOf('sk_live_1')).to.equal('Stripe accepts the secret key')
      } finally {
        await restricted.stop()
      }
      expect((await check('sk_test_first')).message).to.include('a test key')
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
