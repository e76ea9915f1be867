import { appNow } from '#apps/app-time.ts'
import { getApp, type App } from '#apps/store.ts'
import { findLastOfSeller, findLatestRenewal } from '#checkout/store.ts'
import { receivingAccount } from '#bank-accounts/receiving-account.ts'
import { stateOf, takesTransferOfRest } from '#checkout/view-checkout.ts'
import type { Context } from '#context.ts'
import { findCustomer, type Customer } from '#customers/store.ts'
import type { Queries } from '#db/queries.ts'
import { findPlan, findPrice, type Plan, type Price } from '#plans/store.ts'
import { discounted, type DiscountedAmount } from '#promotions/discount.ts'
import { findPromotion, type Promotion } from '#promotions/store.ts'
import { availableMethods } from '#providers/available-methods.ts'
import type { Method } from '#providers/providers.ts'
import { hasProcessingSession } from '#providers/store.ts'
import { wholeSeconds, type AppTime } from '#shared/time.ts'
import { decideOn } from '#subscriptions/decide-payment.ts'
import type { PaymentEffect } from '#subscriptions/lifecycle.ts'
import { findLineOfEnd, type LedgerLine, type Subscription } from '#subscriptions/store.ts'
import { findTransaction, quoteOf, type Transaction } from '#transactions/store.ts'
import { admitToRenewable, getRenewable, type RenewableSubscription } from './get-renewable.ts'
import { firstMailAt } from '#mails/reminders/stages.ts'

/** What the renewal page shows. */
export interface RenewalView {
  readonly app: App
  readonly subscription: RenewableSubscription
  readonly plan: Plan
  /** The subscription's current price, on sale or not. */
  readonly price: Price
  /** What a renewal costs: the price's regular amount, less the discount of a promotion for every period. */
  readonly due: DiscountedAmount
  readonly customer: Customer | null
  /** Empty if there is nothing to pay. */
  readonly methods: readonly Method[]
  /** What a payment would do now, by the function that applies it. */
  readonly effect: PaymentEffect
  /** The payment that this link opened and that can still be made. */
  readonly open: OpenPayment | null
  /** Whether the period that the link was mailed for has been paid already. */
  readonly isRenewedAlready: boolean
  /** The payment that renewed it; null if it is not renewed, or was renewed without a payment. */
  readonly paid: PaidRenewal | null
  /** The app's own time of the view. */
  readonly now: AppTime
}

/** A payment under way, with the token of its checkout. */
export interface OpenPayment {
  readonly token: string
  readonly transaction: Transaction
  /** Whether the checkout has expired, and only the rest of a part payment can still be transferred. */
  readonly takesRest: boolean
  /** Whether the payment is being processed, so that the payer must not pay again (R217). */
  readonly isProcessing: boolean
}

/** The payment of the current period. */
export interface PaidRenewal {
  readonly transaction: Transaction
  readonly line: LedgerLine
  /** The name of the plan that was bought. */
  readonly title: string
}

/** The renewal behind a token. Throws `not_found` (404), and `checkout_expired` (410) for a lifetime subscription. */
export async function viewRenewal(ctx: Context, renewalToken: string): Promise<RenewalView> {
  return viewOf(ctx, await getRenewable(ctx.db, renewalToken))
}

/** `viewRenewal` as the first read of a request: also throws `rate_limited`, see `admit`. */
export async function admitToRenewal(ctx: Context, renewalToken: string): Promise<RenewalView> {
  return viewOf(ctx, await admitToRenewable(ctx, renewalToken))
}

async function viewOf(ctx: Context, subscription: RenewableSubscription): Promise<RenewalView> {
  const { appId, customerId } = subscription
  const app = await getApp(ctx.db, appId)
  const found = await priceOf(ctx.db, subscription)
  const { plan, price } = found
  const now = appNow(app, ctx.clock.now())
  const paidAt = wholeSeconds(now)
  const isRenewed = isRenewedAlready(subscription, now)
  const subject = { ...found, current: subscription, endUserId: subscription.endUserId }
  const quote = { purpose: 'extend', isByRenewalLink: true, openedAt: now, isAccepted: false } as const
  const due = discounted(await promotionOf(ctx.db, subscription), price)
  const effect = await decideOn(ctx.db, subject, quote, paidAt)
  const open = await findOpenPayment(ctx.db, app, subscription, { due, now })
  return {
    app,
    subscription,
    plan,
    price,
    due,
    customer: customerId === null ? null : await findCustomer(ctx.db, appId, customerId),
    methods: due.amount === 0 ? [] : await availableMethods(ctx.db, app, due.amount, price.currency),
    effect,
    open: open?.takesRest && effect.kind === 'refused' ? null : open,
    isRenewedAlready: isRenewed,
    paid: isRenewed ? await findPaid(ctx.db, subscription) : null,
    now,
  }
}

async function findPaid(db: Queries, subscription: Subscription): Promise<PaidRenewal | null> {
  const line = await findLineOfEnd(db, subscription)
  const transaction = line?.transactionId ? await findTransaction(db, line.transactionId) : null
  if (!line || transaction?.status !== 'completed' || transaction.amount === 0) return null
  const plan = await findPlan(db, subscription.appId, line.planId)
  return { transaction, line, title: plan?.name ?? transaction.planRef }
}

/**
 * The address of the seller's site: the origin of the `cancel_url` of the last checkout that the seller opened; undefined if there is none.
 */
export async function findSellerUrl(db: Queries, { endUserId }: Subscription): Promise<string | undefined> {
  const last = await findLastOfSeller(db, endUserId)
  return last ? new URL(last.cancelUrl).origin : undefined
}

/** The subscription's current price with its plan. */
export async function priceOf(db: Queries, subscription: Subscription): Promise<{ plan: Plan; price: Price }> {
  const found = await findPrice(db, subscription.appId, subscription.priceId)
  if (!found) throw new Error(`the price of subscription ${subscription.id} does not exist`)
  return found
}

/** The promotion whose discount the renewals of the subscription get, even if it has ended since (R357); null if there is none. */
export async function promotionOf(
  db: Queries,
  { appId, promotionCode }: Pick<Subscription, 'appId' | 'promotionCode'>,
): Promise<Promotion | null> {
  return promotionCode === null ? null : findPromotion(db, appId, promotionCode)
}

/**
 * The last checkout that the link opened, if it asks for the current price and discount, and it or its rest can still be paid. If it is
 * being processed, whatever it asks for, unless the payment would not be applied any more.
 */
export async function findOpenPayment(
  db: Queries,
  app: App,
  subscription: Subscription,
  { due, now }: Pick<RenewalView, 'due' | 'now'>,
): Promise<OpenPayment | null> {
  const latest = await findLatestRenewal(db, subscription.id)
  const transaction = latest?.transactionId ? await findTransaction(db, latest.transactionId) : null
  if (!latest || !transaction) return null
  const isOpen = stateOf(latest, transaction, now) === 'open'
  const isProcessing = await hasProcessingSession(db, transaction)
  const isOver = !isOpen && !isProcessing
  const takesRest = isOver && takesTransferOfRest(transaction) && (await receivingAccount(db, app)) !== null
  if (isOver && !takesRest) return null
  const isSame = transaction.priceId === subscription.priceId && transaction.promotionCode === due.promotionCode
  const isWanted = isSame || (isProcessing && (await willApply(db, subscription, transaction, now)))
  return isWanted ? { token: latest.token, transaction, takesRest, isProcessing } : null
}

/** Whether the payment of a renewal would be applied now: one for an earlier price extends the period all the same (R104). */
async function willApply(
  db: Queries,
  subscription: Subscription,
  transaction: Transaction,
  now: AppTime,
): Promise<boolean> {
  const { appId, priceId, endUserId } = transaction
  const quote = quoteOf(transaction)
  const found = priceId === null ? null : await findPrice(db, appId, priceId)
  if (!quote || !found) throw new Error(`the renewal by transaction ${transaction.id} is for no subscription`)
  const effect = await decideOn(db, { ...found, current: subscription, endUserId }, quote, wholeSeconds(now))
  return effect.kind !== 'refused'
}

/** Before the first mail of the current period is due, whoever has the link most likely has it from a mail about an earlier period. */
function isRenewedAlready({ periodStart, currentPeriodEnd }: RenewableSubscription, now: AppTime): boolean {
  return now < firstMailAt(periodStart, currentPeriodEnd)
}
