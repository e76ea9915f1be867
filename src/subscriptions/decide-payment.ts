import type { Queries } from '#db/queries.ts'
import type { NamedCustomer } from '#customers/store.ts'
import type { NamedPlan, PriceIntervals } from '#plans/store.ts'
import type { AppliedPromotion } from '#promotions/store.ts'
import type { Interval } from '#shared/interval.ts'
import type { AppTime } from '#shared/time.ts'
import { decide, dependsOnPlanChoice, purposeOf, type PaymentEffect, type Purpose, type Quote } from './lifecycle.ts'
import { findLastPlanChoice, hadTrial, type DecidedSubscription, type Subscription } from './store.ts'

/** The part of a quote that its transaction stores, and whether an operator accepted it. */
export type StoredQuote = Pick<Quote, 'purpose' | 'isByRenewalLink' | 'openedAt' | 'isAccepted'>

/** The price that a payment is for. */
export interface PaidPrice {
  readonly price: PriceIntervals
  readonly plan: NamedPlan
}

/** All rows that applying a payment to a subscription needs, read once under the end user's lock. */
export interface SubscriptionRows extends PaidPrice {
  readonly quote: StoredQuote
  readonly current: Subscription | null
  /** The plan and the customer of `current`. */
  readonly currentPlan: NamedPlan | null
  readonly currentCustomer: NamedCustomer | null
  /** The customer that the payment names. */
  readonly customer: NamedCustomer | null
  /** The promotion whose discount the payment got. */
  readonly promotion: AppliedPromotion | null
  /** The period end that the payment was opened to renew; null if there was none. */
  readonly renewsEnd: AppTime | null
}

/** The part of the rows on which a payment is decided. */
interface RowsToDecideOn extends PaidPrice {
  readonly current: DecidedSubscription | null
  readonly endUserId: number
}

/** Returns the effect of a quoted payment made at `paidAt`, the app's own time in whole seconds. Writes nothing. */
export async function decideOn(
  db: Queries,
  { price, plan, current, endUserId }: RowsToDecideOn,
  stored: StoredQuote,
  paidAt: AppTime,
): Promise<PaymentEffect> {
  const isTrial = stored.purpose === 'trial'
  const interval = intervalOf(price, isTrial)
  const isTrialUsed = isTrial && (await hadTrial(db, endUserId, plan.id))
  const quote = { ...stored, planId: plan.id, priceId: price.id, interval, isTrialUsed }
  const last = current && dependsOnPlanChoice(current, quote) ? await findLastPlanChoice(db, current.id) : null
  return decide(current, last, quote, paidAt)
}

/** The columns of a new transaction that hold its quote, except the price. */
export interface QuoteColumns {
  readonly isTrial: boolean
  readonly purpose: Purpose
  readonly isByRenewalLink: boolean
  /** The period end that it is opened to renew; null if there is none. */
  readonly renewsEnd: AppTime | null
}

/** Quotes a payment that is opened `now`, the app's own time in whole seconds. */
export function quotePayment(
  current: DecidedSubscription | null,
  planId: number,
  { isTrial, isByRenewalLink }: { readonly isTrial: boolean; readonly isByRenewalLink: boolean },
  now: AppTime,
): QuoteColumns {
  const purpose = isByRenewalLink ? 'extend' : purposeOf(current, planId, isTrial, now)
  return { isTrial, purpose, isByRenewalLink, renewsEnd: current?.currentPeriodEnd ?? null }
}

/** The length that a price gives: its own, or its trial's. */
export function intervalOf(price: PriceIntervals, isTrial: boolean): Interval {
  if (!isTrial) return { unit: price.intervalUnit, count: price.intervalCount }
  if (price.trialIntervalUnit === null || price.trialIntervalCount === null)
    throw new Error(`price ${price.id} has no trial`)
  return { unit: price.trialIntervalUnit, count: price.trialIntervalCount }
}
