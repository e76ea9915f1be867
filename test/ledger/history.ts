import { bankMails } from '#bank-mail/store.ts'
import { changeApp, enableMethod } from '../support/operators.ts'
import { setRealtime } from '#apps/set-realtime.ts'
import { getApp, apps } from '#apps/store.ts'
import { chooseMethod } from '#checkout/choose-method.ts'
import { openBankPage } from '#checkout/open-bank-page.ts'
import { operator } from '#commands/caller.ts'
import { perform } from '#commands/perform.ts'
import type { Context } from '#context.ts'
import { closePayment } from '#decisions/close-payment.ts'
import { importSubscriptions } from '#subscriptions/import-subscriptions.ts'
import { movePayment } from '#decisions/move-payment.ts'
import { resolveTransaction, type ResolveInput } from '#decisions/resolve-transaction.ts'
import { matchBankMail } from '#bank-mail/match-bank-mail.ts'
import { listBankMails } from '#bank-mail/list-bank-mails.ts'
import { listPaymentsOf } from '#payments/store.ts'
import { advanceTestClock } from '#test-clock/advance-test-clock.ts'
import { sendDueReceipts } from '#mails/receipts/send-due-receipts.ts'
import { sendDueReminders } from '#mails/reminders/send-due-reminders.ts'
import { unixSeconds } from '#shared/time.ts'
import { endSubscription } from '#subscriptions/end-subscription.ts'
import { getSubscription } from '#subscriptions/store.ts'
import { openRenewal } from '#renewals/open-renewal.ts'
import { findTransaction, type Transaction } from '#transactions/store.ts'
import { listTransactionRows } from '#transactions/lists/store.ts'
import { aBankShop, transferFor, type BankShop } from '../bank-mail/bank-shop.ts'
import { SmtpInbox } from '../mail/smtp-inbox.ts'
import { genuineMail, TRANSFER } from '../support/bank-mails.ts'
import type { TestContext } from '../support/context.ts'
import {
  aCheckout,
  aCustomer,
  anApp,
  aPlan,
  aPromotion,
  FREE_TRIAL,
  LIFETIME,
  MONTHLY,
  PAID_TRIAL,
  paid,
  priceId,
  tokenOf,
  YEARLY,
  type TestApp,
} from '../support/factories.ts'
import { startRealtimePeer, type RealtimePeer } from '../support/realtime-peer.ts'
import { aServiceAccountFile } from '../support/service-account.ts'
import { sessionFacts, signedEvent, startStripePeer, type StripePeer } from '../support/stripe-peer.ts'

const MAI = operator('mai')
const CARD = { secretKey: 'sk_test_ledger', webhookSecret: 'whsec_ledger' } as const
const BOOK = { mode: 'payment', plan_ref: 'book', amount: 1999, currency: 'USD' } as const

/** A service with a small history of everything that moves money, periods and queues; its transactions by name. */
export interface History {
  readonly ctx: TestContext
  /** The app that sells, and another one. */
  readonly app: number
  readonly other: number
  readonly transactions: Readonly<Record<TransactionName, number>>
  stop(): Promise<void>
}

type TransactionName =
  | 'monthly'
  | 'renewal'
  | 'sample'
  | 'afterTrial'
  | 'switched'
  | 'lifetime'
  | 'ended'
  | 'byMail'
  | 'short'
  | 'twice'
  | 'dismissed'
  | 'moved'
  | 'target'
  | 'matched'
  | 'givenBack'
  | 'accepted'
  | 'book'
  | 'card'
  | 'cardPending'
  | 'cardFailed'
  | 'cardOpen'
  | 'abroad'
  | 'discounted'
  | 'discountedRenewal'
  | 'reserved'
  | 'free'

/** Makes it by the commands, pages and notifications that make it in production. Stop it afterwards. */
export async function aHistory(): Promise<History> {
  const peers = await startPeers()
  const shop = await aBankShop('ACB', peers.settings)
  const made = new Maker(shop, peers)
  await made.setUp()
  const transactions = {
    ...(await made.subscriptions()),
    ...(await made.promotions()),
    ...(await made.transfers()),
    ...(await made.cards()),
    ...(await made.otherApp()),
  }
  await made.mails()
  return {
    ctx: shop.service.ctx,
    app: shop.app.app.id,
    other: made.other.app.id,
    transactions,
    async stop() {
      await shop.service.stop()
      await Promise.all([peers.stripe.stop(), peers.realtime.stop(), peers.inbox.stop()])
    },
  }
}

interface Peers {
  readonly stripe: StripePeer
  readonly realtime: RealtimePeer
  readonly inbox: SmtpInbox
  readonly settings: Readonly<Record<string, string>>
}

async function startPeers(): Promise<Peers> {
  const [stripe, realtime, inbox] = await Promise.all([
    startStripePeer({ now: () => new Date('2026-03-01T10:00:00Z') as never }, [CARD.secretKey]),
    startRealtimePeer(),
    SmtpInbox.open(),
  ])
  const settings = {
    BILLING_STRIPE_API_BASE: stripe.base,
    BILLING_SMTP_URL: inbox.url,
    BILLING_MAIL_FROM: 'billing@pay.example',
    FIREBASE_DATABASE_EMULATOR_HOST: realtime.host,
  }
  return { stripe, realtime, inbox, settings }
}

class Maker {
  readonly #shop: BankShop
  readonly #peers: Peers
  readonly #ctx: TestContext
  #seller: TestApp
  other!: TestApp

  constructor(shop: BankShop, peers: Peers) {
    this.#shop = shop
    this.#peers = peers
    this.#ctx = shop.service.ctx
    this.#seller = shop.app
  }

  async setUp(): Promise<void> {
    const { app } = this.#seller
    await enableMethod(this.#ctx, 'mai', app, 'card', CARD)
    await changeApp(this.#ctx, 'mai', app, { receipts: true, webhook_url: 'https://shop.example/hooks' })
    await this.#ctx.db.update(apps, { id: app.id }, { webhookSecret: 'sealed' })
    this.#seller = await fresh(this.#ctx, this.#seller)
    this.other = await anApp(this.#ctx, { name: 'Other', auth: 'identity' })
    const database = { databaseUrl: 'https://demo-proj.firebaseio.com', serviceAccount: aServiceAccountFile() }
    await perform(this.#ctx, MAI, setRealtime, database, { app: this.other.app })
    this.other = await fresh(this.#ctx, this.other)
  }

  async subscriptions() {
    const basic = await aPlan(this.#ctx, this.#seller, { prices: [MONTHLY, LIFETIME] })
    const gold = await aPlan(this.#ctx, this.#seller, { prices: [YEARLY] })
    const free = await aPlan(this.#ctx, this.#seller, { prices: [{ ...MONTHLY, trial: FREE_TRIAL }] })
    const cheap = await aPlan(this.#ctx, this.#seller, { prices: [{ ...MONTHLY, trial: PAID_TRIAL }] })
    const customer = await aCustomer(this.#ctx, this.#seller)
    const monthly = await this.#buy('renewer', priceId(basic), { customer_id: `cus_${customer.id}` })
    const renewal = await this.#buy('renewer', priceId(basic))
    await this.#buy('trialist', priceId(free))
    const afterTrial = await this.#buy('trialist', priceId(free))
    const sample = await this.#buy('sampler', priceId(cheap))
    await this.#buy('switcher', priceId(basic))
    await this.#shop.service
      .seller(this.#seller)
      .put('/api/v1/subscriptions/switcher/plan', { price_id: priceId(gold) })
    const switched = await this.#buy('switcher', priceId(gold))
    const lifetime = await this.#buy('owner', priceId(basic, 1))
    const ended = await this.#buy('leaver', priceId(basic))
    this.#ctx.clock.advance('1h')
    const { app } = this.#seller
    await perform(this.#ctx, MAI, endSubscription, { note: 'a mistake' }, { app, externalRef: 'leaver' })
    const csv = `external_ref,price_id,current_period_end,anchor_day,customer_email,customer_name
imported,${priceId(basic)},2026-04-30 10:00:00,31,an@example.com,An\n`
    await importSubscriptions(this.#ctx, MAI, app, csv, { dryRun: false })
    const book = await paid(this.#ctx, this.#seller, { ...BOOK, external_ref: 'reader' })
    return { monthly, renewal, afterTrial, sample, switched, lifetime, ended, book: book.transaction_id! }
  }

  async promotions() {
    const plan = await aPlan(this.#ctx, this.#seller, { prices: [MONTHLY] })
    await aPromotion(this.#ctx, this.#seller, { code: 'EVERY', every_period: true })
    await aPromotion(this.#ctx, this.#seller, { code: 'ALL', percent: 100 })
    await aPromotion(this.#ctx, this.#seller, { code: 'SOME', amount: 30_000, currency: 'VND' })
    const discounted = await this.#buy('saver', priceId(plan), { promotion_code: 'EVERY' })
    const { appId, id } = (await findTransaction(this.#ctx.db, discounted))!
    const { renewalToken } = await getSubscription(this.#ctx.db, appId, 'saver')
    await openRenewal(this.#ctx, renewalToken, { payment_method: 'test' })
    const [renewed] = await listTransactionRows(this.#ctx.db, {
      ...{ appId, externalRef: 'saver', status: 'completed', flagged: null, after: null },
      limit: 1,
    })
    if (!renewed || renewed.id === id) throw new Error('the renewal was not paid')
    const free = await this.#buy('winner', priceId(plan), { promotion_code: 'ALL' })
    const open = { price_id: priceId(plan), external_ref: 'winner', promotion_code: 'SOME' }
    const { transaction_id: reserved } = await aCheckout(this.#ctx, this.#seller, open)
    return { discounted, discountedRenewal: renewed.id, free, reserved: reserved! }
  }

  async transfers() {
    const names = [
      'byMail',
      'short',
      'twice',
      'dismissed',
      'moved',
      'target',
      'matched',
      'givenBack',
      'accepted',
    ] as const
    const opened = new Map<string, Transaction>()
    for (const name of names) opened.set(name, await this.#openTransfer(name))
    const of = (name: (typeof names)[number]): Transaction => opened.get(name)!
    await this.#transfer(of('byMail'))
    await this.#transfer(of('short'), 40_000)
    await this.#transfer(of('accepted'), 98_000)
    for (const name of ['twice', 'dismissed', 'moved'] as const) {
      await this.#transfer(of(name))
      await this.#transfer(of(name))
    }
    await this.#transfer(of('givenBack'))
    await this.#resolve(of('givenBack').id, 'refund', { reference: 'BACK1' })
    await this.#resolve(of('accepted').id, 'complete')
    await this.#resolve(of('dismissed').id, 'dismiss')
    const [, second] = await listPaymentsOf(this.#ctx.db, of('moved').id)
    await movePayment(this.#ctx, MAI, { payment_id: second!.id, transaction_id: of('target').id, note: 'meant for it' })
    // Three mails without a code: one is matched, one is closed, one waits.
    for (const content of ['TIEN HANG', 'MUA SACH', 'QUA TANG'])
      await this.#shop.relay(await genuineMail('ACB', transferFor(of('short'), { content })))
    const [newest, , oldest] = (await listBankMails(this.#ctx, { unmatched: true })).rows
    await matchBankMail(this.#ctx, MAI, { id: oldest!.id, transactionId: of('matched').id, note: 'the payer called' })
    const closed = await this.#ctx.db.one(bankMails, 'WHERE id = ?', [newest!.id])
    await perform(this.#ctx, MAI, closePayment, { payment_id: closed!.paymentId!, note: 'a gift' }, null)
    return Object.fromEntries(names.map((name) => [name, of(name).id])) as Record<(typeof names)[number], number>
  }

  async cards() {
    const { stripe } = this.#peers
    const card = await this.#payByCard('card')
    await this.#resolve(card, 'refund', { amount: 500 })
    const cardPending = await this.#payByCard('card pending')
    stripe.refundStatus = 'pending'
    await this.#resolve(cardPending, 'refund', { amount: 700 })
    stripe.refundStatus = 'succeeded'
    const cardFailed = await this.#payByCard('card failed')
    await this.#resolve(cardFailed, 'refund', { amount: 900 })
    const refund = stripe.endRefund(stripe.refunds[0]!, 'failed')
    await this.#notify('refund.failed', refund)
    const cardOpen = await this.#openCard('card open')
    return { card, cardPending, cardFailed, cardOpen }
  }

  /** An app whose clock is a year ahead, and which keeps a realtime node. */
  async otherApp() {
    await advanceTestClock(this.#ctx, MAI, this.other.app, { advance_seconds: 365 * 86_400 })
    this.other = await fresh(this.#ctx, this.other)
    const plan = await aPlan(this.#ctx, this.other, { prices: [MONTHLY] })
    const customer = await aCustomer(this.#ctx, this.other)
    const bought = await paid(this.#ctx, this.other, {
      price_id: priceId(plan),
      external_ref: 'far',
      customer_id: `cus_${customer.id}`,
    })
    return { abroad: bought.transaction_id! }
  }

  /** The mails of the last three days of the first period. */
  async mails(): Promise<void> {
    await sendDueReceipts(this.#ctx)
    this.#ctx.clock.set('2026-04-28 12:00:00')
    await sendDueReminders(this.#ctx)
  }

  async #buy(externalRef: string, price: string, body: object = {}): Promise<number> {
    const session = await paid(this.#ctx, this.#seller, { price_id: price, external_ref: externalRef, ...body })
    return session.transaction_id ?? 0
  }

  async #openTransfer(externalRef: string): Promise<Transaction> {
    const checkout = await aCheckout(this.#ctx, this.#seller, {
      mode: 'payment',
      plan_ref: 'book',
      external_ref: externalRef,
      amount: TRANSFER.amount,
      currency: 'VND',
    })
    await chooseMethod(this.#ctx, tokenOf(checkout), 'bank_transfer')
    await openBankPage(this.#ctx, tokenOf(checkout))
    return (await findTransaction(this.#ctx.db, checkout.transaction_id!))!
  }

  async #transfer(transaction: Transaction, amount: number = TRANSFER.amount): Promise<void> {
    const answer = await this.#shop.relay(await genuineMail('ACB', transferFor(transaction, { amount })))
    if (answer.status !== 200) throw new Error(`the mail was refused: ${answer.text}`)
  }

  async #resolve(transactionId: number, action: ResolveInput['action'], more: Partial<ResolveInput> = {}) {
    await resolveTransaction(this.#ctx, MAI, { transactionId, action, note: 'asked by phone', ...more })
  }

  async #openCard(externalRef: string): Promise<number> {
    const checkout = await aCheckout(this.#ctx, this.#seller, { ...BOOK, external_ref: externalRef })
    await chooseMethod(this.#ctx, tokenOf(checkout), 'card')
    return checkout.transaction_id!
  }

  async #payByCard(externalRef: string): Promise<number> {
    const { stripe } = this.#peers
    const transactionId = await this.#openCard(externalRef)
    const session = stripe.sessions.at(-1)!
    stripe.pay(session)
    await this.#notify('checkout.session.completed', sessionFacts(session))
    return transactionId
  }

  async #notify(type: string, object: object): Promise<void> {
    const event = signedEvent(CARD.webhookSecret, unixSeconds(this.#ctx.clock.now()), type, object)
    const answer = await this.#shop.service.call('POST', '/api/v1/webhooks/card-provider', {
      raw: event.body,
      headers: event.headers,
    })
    if (answer.status !== 200) throw new Error(`the notification was refused: ${answer.text}`)
  }
}

async function fresh(ctx: Context, seller: TestApp): Promise<TestApp> {
  return { ...seller, app: await getApp(ctx.db, seller.app.id) }
}
