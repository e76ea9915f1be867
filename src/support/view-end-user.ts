import { appNow } from '#apps/app-time.ts'
import { getApp, type App } from '#apps/store.ts'
import { checkoutUrl } from '#checkout/view-checkout.ts'
import { findSessionOfTransaction } from '#checkout/store.ts'
import { fitOf, type Fit } from '#bank-mail/fits.ts'
import { listMailsFor } from '#bank-mail/list-bank-mails.ts'
import type { Context } from '#context.ts'
import { findCustomer } from '#customers/store.ts'
import { databaseNow } from '#db/database-now.ts'
import { presentCustomer } from '#customers/present.ts'
import { findPrice, type Price } from '#plans/store.ts'
import { renewalLink } from '#mails/reminders/renewal-link.ts'
import { firstMailAt } from '#mails/reminders/stages.ts'
import { mailState } from '#mails/claims/store.ts'
import { listRemindersOf } from '#mails/reminders/store.ts'
import { dueOf } from '#payments/balance.ts'
import { formatIdOrNull } from '#shared/ids.ts'
import { formatTimestamp, formatTimestampOrNull, type AppTime, type RealTime } from '#shared/time.ts'
import { presentSubscription } from '#subscriptions/present.ts'
import { findSubscription, viewSubscription, type Subscription } from '#subscriptions/store.ts'
import { presentTransaction } from '#transactions/present.ts'
import { type ShownTransaction, type Transaction } from '#transactions/store.ts'
import { listTransactionRows } from '#transactions/lists/store.ts'
import { listReceiptsOf } from '#transactions/receipts/store.ts'
import type { EndUser, MailView, PriceView, ReceiptView } from './end-user.ts'
import { nextSteps, type NextStep } from './next-steps.ts'
import { listUnallocated, readUndelivered } from './store.ts'

/** All that support needs to know about an end user. */
export interface EndUserView extends EndUser {
  readonly next_steps: readonly NextStep[]
}

const MAX_TRANSACTIONS = 10
const MAX_MAILS = 10
const MAX_RECEIPTS = 10

/** Gathers the view; the end user may have no subscription. */
export async function viewEndUser(ctx: Context, appId: number, externalRef: string): Promise<EndUserView> {
  const app = await getApp(ctx.db, appId)
  const now = appNow(app, ctx.clock.now())
  const subscription = await findSubscription(ctx.db, appId, externalRef)
  const transactions = await listTransactionRows(ctx.db, {
    appId,
    externalRef,
    status: null,
    flagged: null,
    after: null,
    limit: MAX_TRANSACTIONS,
  })
  const customerId = subscription?.customerId ?? transactions.find((row) => row.customerId !== null)?.customerId ?? null
  const customer = customerId === null ? null : await findCustomer(ctx.db, appId, customerId)
  const realNow = await databaseNow(ctx, ctx.db)
  const { pending, failed, lastFailed } = await readUndelivered(ctx.db, appId, externalRef)
  const view = {
    app_id: appId,
    app_name: app.name,
    sandbox: app.isSandbox,
    external_ref: externalRef,
    subscription: subscription && (await presentWithPrice(ctx, subscription, now)),
    customer: customer && presentCustomer(customer),
    reminders_stopped_at: formatTimestampOrNull(subscription?.remindersStoppedAt ?? null),
    renewal_link: subscription?.currentPeriodEnd ? renewalLink(ctx.config.baseUrl, subscription.renewalToken) : null,
    transactions: await Promise.all(transactions.map((row) => presentWithLink(ctx, app, row))),
    unmatched: await unmatchedFor(ctx, transactions),
    mails: subscription ? await mailsOf(ctx, subscription, realNow) : [],
    receipts: await receiptsOf(ctx, transactions, realNow),
    events: { pending, failed, last_failed: formatIdOrNull('evt', lastFailed) },
  }
  const renewsFrom = subscription?.currentPeriodEnd
    ? firstMailAt(subscription.periodStart, subscription.currentPeriodEnd)
    : null
  const unallocated = await listUnallocated(ctx.db, appId, externalRef)
  return { ...view, next_steps: nextSteps(view, { unallocated, now, renewsFrom }) }
}

/** Unmatched money of exactly what one of the transactions waits for. */
async function unmatchedFor(ctx: Context, transactions: readonly Transaction[]): Promise<Fit[]> {
  const waiting = transactions.filter(({ status, transferCode }) => status === 'pending' && transferCode !== null)
  if (waiting.length === 0) return []
  const fits = (await listMailsFor(ctx, waiting)).flatMap((mail) =>
    waiting.filter((transaction) => dueOf(transaction) === mail.amount).map(({ id }) => fitOf(mail, id)),
  )
  return fits.filter((fit) => fit !== null)
}

async function presentWithPrice(ctx: Context, subscription: Subscription, now: AppTime) {
  const shown = presentSubscription(await viewSubscription(ctx.db, subscription), now)
  const found = await findPrice(ctx.db, subscription.appId, subscription.priceId)
  return { ...shown, price: found && priceViewOf(found.price) }
}

function priceViewOf({ amount, currency, intervalUnit, intervalCount }: Price): PriceView {
  return { amount, currency, interval_unit: intervalUnit, interval_count: intervalCount }
}

async function presentWithLink(ctx: Context, app: App, transaction: ShownTransaction) {
  const session = transaction.status === 'pending' ? await findSessionOfTransaction(ctx.db, transaction.id) : null
  const isOpen = session !== null && session.expiresAt > appNow(app, ctx.clock.now())
  return {
    ...presentTransaction(transaction),
    transfer_code: transaction.transferCode,
    link: isOpen ? checkoutUrl(ctx.config.baseUrl, session.token) : null,
  }
}

async function mailsOf(ctx: Context, { id }: Subscription, now: RealTime): Promise<MailView[]> {
  const reminders = await listRemindersOf(ctx.db, [id])
  const newest = reminders.toSorted((a, b) => b.claimedAt.getTime() - a.claimedAt.getTime())
  return newest.slice(0, MAX_MAILS).map((reminder) => ({
    reminder_id: reminder.id,
    reminder_day: reminder.stage,
    period_end: formatTimestamp(reminder.periodEnd),
    status: mailState(reminder, now),
    at: formatTimestamp(reminder.sentAt ?? reminder.handedOverAt ?? reminder.claimedAt),
    error: reminder.lastError,
  }))
}

async function receiptsOf(ctx: Context, transactions: readonly Transaction[], now: RealTime): Promise<ReceiptView[]> {
  const currencies = new Map(transactions.map(({ id, currency }) => [id, currency]))
  const receipts = await listReceiptsOf(ctx.db, [...currencies.keys()])
  return receipts.slice(0, MAX_RECEIPTS).map((receipt) => ({
    receipt_id: receipt.id,
    transaction_id: receipt.transactionId,
    kind: receipt.kind,
    amount: receipt.amount,
    currency: currencies.get(receipt.transactionId) ?? '',
    status: mailState(receipt, now),
    at: formatTimestamp(receipt.sentAt ?? receipt.createdAt),
    error: receipt.lastError,
  }))
}
