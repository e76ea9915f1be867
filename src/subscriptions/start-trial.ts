import { appNow } from '#apps/app-time.ts'
import type { App } from '#apps/store.ts'
import type { Tx } from '#commands/transaction.ts'
import type { OfferedPrice } from '#plans/store.ts'
import type { Interval } from '#shared/interval.ts'
import type { AppTime } from '#shared/time.ts'
import { decideOn, intervalOf } from './decide-payment.ts'
import type { AppliedEffect } from './lifecycle.ts'
import { recordChange } from './record-change.ts'
import { findSubscriptionOfEndUser, getPlanAndCustomer, insertTrialGrant, type DecidedSubscription } from './store.ts'

/** A trial that would start now. */
export interface TrialOffer {
  /** In the smallest unit; 0 for a free trial. */
  readonly amount: number
  /** The app's own time. */
  readonly endsAt: AppTime
  readonly interval: Interval
  readonly effect: AppliedEffect
}

/** The trial that a checkout of this price grants at `now`, the app's own time; null if it grants none (R81). */
export async function trialOnOffer(
  tx: Tx,
  found: OfferedPrice,
  endUserId: number,
  current: DecidedSubscription | null,
  now: AppTime,
): Promise<TrialOffer | null> {
  const { trialAmount } = found.price
  if (trialAmount === null) return null
  const quote = { purpose: 'trial', isByRenewalLink: false, openedAt: now, isAccepted: false } as const
  const effect = await decideOn(tx, { ...found, current, endUserId }, quote, now)
  if (effect.kind === 'refused' || !effect.period.end) return null
  return { amount: trialAmount, endsAt: effect.period.end, interval: intervalOf(found.price, true), effect }
}

/** The checkout whose trial starts. */
interface TrialCheckout {
  readonly endUserId: number
  readonly externalRef: string
  /** Null leaves the subscription's customer as it is. */
  readonly customerId: number | null
  /** The renewals after the trial get the discount of this promotion. */
  readonly promotionCode: string | null
  /** The app's own time. */
  readonly now: AppTime
}

/** Starts a free trial during the checkout call. */
export async function startFreeTrial(
  tx: Tx,
  app: App,
  { interval, effect: { kind, planId, priceId, period } }: TrialOffer,
  { endUserId, externalRef, customerId, promotionCode, now }: TrialCheckout,
): Promise<void> {
  if (!(await insertTrialGrant(tx, { appId: app.id, endUserId, planId, transactionId: null, grantedAt: now })))
    throw new Error(`end user ${endUserId} had the trial of plan ${planId}, although the lock was held`)
  const set = { planId, priceId, ...(customerId === null ? {} : { customerId }), period, inTrial: true, promotionCode }
  // Not in whole seconds: a checkout that was opened earlier in the same second does not count as later (R102).
  const times = { paidAt: now, openedAt: appNow(app, tx.now) }
  const line = { transactionId: null, kind, interval, isTrial: true, ...times, isAccepted: false }
  const before = await findSubscriptionOfEndUser(tx, endUserId)
  const named = { appId: app.id, planId, customerId: customerId ?? before?.customerId ?? null }
  const planAndCustomer = await getPlanAndCustomer(tx, named)
  await recordChange(tx, app, { before, owner: { endUserId, externalRef }, set, line, planAndCustomer })
}
