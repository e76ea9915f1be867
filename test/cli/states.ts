import type { Context } from '#context.ts'
import { operator } from '#commands/caller.ts'
import { refundPayment } from '#decisions/refund-payment.ts'
import { AppError } from '#shared/errors.ts'
import { inTransaction } from '#commands/transaction.ts'
import { movementOf, recordUnallocatedMoney } from '#bank-mail/book-money.ts'
import { bankMails, insertBankMail, type BankMail } from '#bank-mail/store.ts'
import { assignTransferCode } from '#providers/bank-transfer/store.ts'
import { reminders } from '#mails/reminders/store.ts'
import { HOUR_MS, addMs } from '#shared/time.ts'
import { subscriptions } from '#subscriptions/store.ts'
import { transactions } from '#transactions/store.ts'
import { receipts } from '#transactions/receipts/store.ts'
import { unansweredSince } from '../support/unanswered.ts'
import {
  aCheckout,
  aCustomer,
  anApp,
  aPlan,
  aSubscription,
  FREE_TRIAL,
  LIFETIME,
  MONTHLY,
  partlyPaid,
  priceId,
  YEARLY,
  type TestApp,
} from '../support/factories.ts'
import { failEvents } from '../support/failed-events.ts'

let mails = 0

/** A mail from the relay that was ignored, with a payment where it waits for an operator. Returns its id. */
export async function aBankMail(ctx: Context, changes: Partial<BankMail> = {}): Promise<number> {
  mails += 1
  const mail = {
    receivedAt: addMs(ctx.clock.now(), 1000),
    messageId: null,
    messageIdHash: null,
    contentHash: String(mails).padStart(64, '0'),
    bank: null,
    bankReference: null,
    amount: null,
    transferCode: null,
    status: 'ignored',
    reason: 'no_transfer_code',
    appId: null,
    bankAccountId: null,
    transactionId: null,
    bookedAt: null,
    review: null,
    matchedAt: null,
    closedAt: null,
    paymentId: null,
    forwarding: null,
    ...changes,
  }
  return inTransaction(ctx, async (tx) => {
    const money = { ...(await movementOf(tx, mail)), bankAccountId: mail.bankAccountId, appId: null, paidAt: tx.now }
    const amount = mail.review === 'credit' ? mail.amount : null
    const waiting = mail.review === null ? null : await recordUnallocatedMoney(tx, { ...money, amount })
    return insertBankMail(tx, { ...mail, paymentId: waiting?.paymentId ?? null })
  })
}

/** A pending transaction of 99 000 VND, and a mail about money that does not name it. */
export async function unmatchedMoney(
  ctx: Context,
  app: TestApp,
  amount: number,
): Promise<{ transaction: number; mail: number }> {
  const { transaction_id: transaction } = await aCheckout(ctx, app, { price_id: priceId(await aPlan(ctx, app)) })
  const mail = await aBankMail(ctx, { bank: 'ACB', bankReference: `FT${mails}`, amount, review: 'credit' })
  await inTransaction(ctx, (tx) => assignTransferCode(tx, transaction!, `ABCDEFGH${20 + mails}`))
  return { transaction: transaction!, mail }
}

/** A subscription of `user-1` with a customer, and a reminder that was handed over an hour ago without an answer. Returns its id. */
export async function anUnconfirmedReminder(ctx: Context, app: TestApp): Promise<number> {
  const customer = await aCustomer(ctx, app)
  await aSubscription(ctx, app, await aPlan(ctx, app), { customer_id: `cus_${customer.id}` })
  const subscription = (await ctx.db.one(subscriptions, 'WHERE app_id = ?', [app.app.id]))!
  const anHourAgo = addMs(ctx.clock.now(), -HOUR_MS)
  return ctx.db.insert(reminders, {
    ...{ appId: app.app.id, subscriptionId: subscription.id, periodEnd: subscription.currentPeriodEnd!, stage: 3 },
    ...unansweredSince(anHourAgo),
  })
}

/** A receipt of the app's first transaction that was handed over an hour ago without an answer. Returns its id. */
export async function anUnconfirmedReceipt(ctx: Context, app: TestApp): Promise<number> {
  const transaction = (await ctx.db.one(transactions, 'WHERE app_id = ? ORDER BY id', [app.app.id]))!
  const anHourAgo = addMs(ctx.clock.now(), -HOUR_MS)
  return ctx.db.insert(receipts, {
    ...{ appId: app.app.id, transactionId: transaction.id, kind: 'received', amount: 99_000, total: 99_000 },
    ...unansweredSince(anHourAgo),
    ...{ retryAt: anHourAgo, createdAt: anHourAgo },
  })
}

/** A refund of money that is booked for nothing, which linh asked for and another operator may grant. */
export async function anOpenApproval(ctx: Context): Promise<void> {
  const mail = await aBankMail(ctx, {
    bank: 'ACB',
    bankReference: `approved-${mails}`,
    amount: 70_000,
    review: 'credit',
  })
  const { paymentId: payment_id } = (await ctx.db.one(bankMails, 'WHERE id = ?', [mail]))!
  const limited = { ...ctx, config: { ...ctx.config, refundLimit: new Map([['VND', 1]]) } }
  const input = { payment_id, reference: `FT-APPROVED-${mails}`, note: 'sent by mistake' }
  await refundPayment(limited, operator('linh'), input).catch((error: unknown) => expectApproval(error))
}

function expectApproval(error: unknown): void {
  if (!(error instanceof AppError && error.code === 'forbidden')) throw error
}

/** What `aBusyService` created. */
export interface BusyService {
  readonly shop: TestApp
  readonly reader: TestApp
  /** The public id of its plan with three prices. */
  readonly plan: string
  /** A transaction of `user-1` that is flagged underpaid. */
  readonly flagged: number
}

/** A live and a sandbox app with subscriptions, payments, mails, deliveries and reminders in many states. */
export async function aBusyService(ctx: Context): Promise<BusyService> {
  const reader = await anApp(ctx, { name: 'Reader', webhookUrl: 'http://127.0.0.1:9/hooks' })
  const shop = await anApp(ctx, { name: 'Cửa hàng sách', sandbox: false })
  const plan = await aPlan(ctx, reader, {
    code: 'premium',
    prices: [MONTHLY, { ...YEARLY, trial: FREE_TRIAL }, LIFETIME],
  })
  const customer = await aCustomer(ctx, reader)
  await aSubscription(ctx, reader, plan, { external_ref: 'user-1', customer_id: `cus_${customer.id}` })
  await aSubscription(ctx, reader, plan, { external_ref: 'user-2', price_id: priceId(plan, 2) })
  await aCheckout(ctx, reader, { external_ref: 'user-3', price_id: priceId(plan, 1), skip_trial: true })
  await partlyPaid(ctx, reader, { external_ref: 'user-1', price_id: priceId(plan) })
  await unmatchedMoney(ctx, shop, 99_000)
  await aBankMail(ctx, { bank: 'ACB', status: 'processed', amount: 99_000, appId: shop.app.id, reason: null })
  const phone = await anApp(ctx, { name: 'Phone' })
  await anUnconfirmedReminder(ctx, phone)
  await anUnconfirmedReceipt(ctx, phone)
  await failEvents(ctx.db, 'ORDER BY id LIMIT 1')
  const flagged = await ctx.db.one(transactions, 'WHERE flag_reason IS NOT NULL')
  return { shop, reader, plan: `plan_${plan.id}`, flagged: flagged!.id }
}
