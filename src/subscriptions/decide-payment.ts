import type { Queries } from '#db/queries.ts'
import type { NamedCustomer } from '#customers/store.ts'
import type { NamedPlan, PriceIntervals } from '#plans/store.ts'
import type { AppliedPromotion } from '#promotions/store.ts'
import type { Interval } from '#shared/interval.ts'
import type { AppTime } from '#shared/time.ts'
import { decide, dependsOnDecision, purposeOf, type PaymentEffect, type Purpose } from './lifecycle.ts'
import { findLastDecision, hadTrial, type DecidedSubscription, type Subscription } from './store.ts'

/** The part of a quote that is stored with a transaction. */
export interface QuotedPayment {
  readonly purpose: Purpose
  readonly isRenewal: boolean
  /** When it was opened, in the app's own time. */
  readonly createdAt: AppTime
  /** Whether an operator applies it although it was superseded. */
  readonly isAccepted?: boolean
}

/** The price that a payment is for. */
export interface PaidPrice {
  readonly price: PriceIntervals
  readonly plan: NamedPlan
}

/** All rows that applying a payment needs, read once under the end user's lock. */
export interface PaymentSubject extends PaidPrice {
  readonly current: Subscription | null
  /** The plan and the customer of `current`. */
  readonly currentPlan: NamedPlan | null
  readonly currentCustomer: NamedCustomer | null
  /** The customer that the payment names. */
  readonly customer: NamedCustomer | null
  /** The promotion whose discount the payment got. */
  readonly promotion: AppliedPromotion | null
  /** Whether another payment renewed the period that this one was opened to renew. */
  readonly isRenewedAlready: boolean
}

/** What the payment buys, and its effect. */
export interface DecidedPayment {
  readonly interval: Interval
  readonly effect: PaymentEffect
}

/** What a payment of a stored quote does if it counts as made at `paidAt`, the app's own time in whole seconds. Writes nothing. */
export async function decideOn(
  db: Queries,
  subject: PaidPrice & { readonly current: DecidedSubscription | null; readonly endUserId: number },
  payment: QuotedPayment,
  paidAt: AppTime,
): Promise<DecidedPayment> {
  const { price, plan, current, endUserId } = subject
  const isTrial = payment.purpose === 'trial'
  const interval = intervalOf(price, isTrial)
  const quote = {
    purpose: payment.purpose,
    isRenewal: payment.isRenewal,
    planId: plan.id,
    priceId: price.id,
    interval,
    openedAt: payment.createdAt,
    isTrialUsed: isTrial && (await hadTrial(db, endUserId, plan.id)),
    isAccepted: payment.isAccepted ?? false,
  }
  const last = current && dependsOnDecision(current, quote) ? await findLastDecision(db, current.id) : null
  return { interval, effect: decide(current, last, quote, paidAt) }
}

/** The columns of a new transaction that hold its quote. */
export interface StoredQuote {
  readonly isTrial: boolean
  readonly purpose: Purpose
  readonly isRenewal: boolean
  readonly quotedRevision: number | null
  readonly quotedEnd: AppTime | null
  /** The period end that it is opened to renew; null if there is none. */
  readonly renewsEnd: AppTime | null
}

/** Quotes a payment that is opened `now`, the app's own time in whole seconds. */
export async function quotePayment(
  db: Queries,
  subject: PaidPrice & { readonly current: Subscription | null; readonly endUserId: number },
  { isTrial, isRenewal }: { readonly isTrial: boolean; readonly isRenewal: boolean },
  now: AppTime,
): Promise<StoredQuote> {
  const { current, plan } = subject
  const purpose = isRenewal ? 'extend' : purposeOf(current, plan.id, isTrial, now)
  const { effect } = await decideOn(db, subject, { purpose, isRenewal, createdAt: now }, now)
  return {
    isTrial,
    purpose,
    isRenewal,
    quotedRevision: current?.revision ?? null,
    quotedEnd: effect.kind === 'refused' ? null : effect.period.end,
    renewsEnd: current?.currentPeriodEnd ?? null,
  }
}

/** The length that a price gives: its own, or its trial's. */
export function intervalOf(price: PriceIntervals, isTrial: boolean): Interval {
  if (!isTrial) return { unit: price.intervalUnit, count: price.intervalCount }
  if (price.trialIntervalUnit === null || price.trialIntervalCount === null)
    throw new Error(`price ${price.id} has no trial`)
  return { unit: price.trialIntervalUnit, count: price.trialIntervalCount }
}
