import type { App } from '#apps/store.ts'
import type { Tx } from '#commands/transaction.ts'
import type { PriceWithPlan } from '#plans/store.ts'
import type { AppTime } from '#shared/time.ts'
import { decideOn, type DecidedPayment } from './decide-payment.ts'
import { readPlanAndCustomer } from './present.ts'
import { recordChange } from './record-change.ts'
import { insertTrialGrant, type Subscription } from './store.ts'

/** A trial that would start now. */
export interface TrialOffer {
  /** In the smallest unit; 0 for a free trial. */
  readonly amount: number
  /** The app's own time. */
  readonly endsAt: AppTime
  readonly decided: DecidedPayment
}

/** The trial that a checkout of this price grants at `now`, the app's own time; null if it grants none (R81). */
export async function trialOnOffer(
  tx: Tx,
  found: PriceWithPlan,
  endUserId: number,
  current: Subscription | null,
  now: AppTime,
): Promise<TrialOffer | null> {
  const { trialAmount } = found.price
  if (trialAmount === null) return null
  const quote = { purpose: 'trial', isByRenewalLink: false, openedAt: now, isAccepted: false } as const
  const decided = await decideOn(tx, { ...found, current, endUserId }, quote, now)
  if (decided.effect.kind === 'refused' || !decided.effect.period.end) return null
  return { amount: trialAmount, endsAt: decided.effect.period.end, decided }
}

/** Starts a free trial during the checkout call. The renewals after it get the discount of `promotionCode`. */
export async function startFreeTrial(
  tx: Tx,
  app: App,
  { decided: { effect, interval } }: TrialOffer,
  subject: { readonly endUserId: number; readonly externalRef: string; readonly customerId: number | null },
  current: Subscription | null,
  { now, promotionCode }: { readonly now: AppTime; readonly promotionCode: string | null },
): Promise<void> {
  const { endUserId, externalRef, customerId } = subject
  if (effect.kind === 'refused') throw new Error(`a trial that is refused cannot start: ${effect.reason}`)
  const { kind, planId, priceId, period } = effect
  if (!(await insertTrialGrant(tx, { appId: app.id, endUserId, planId, transactionId: null, grantedAt: now })))
    throw new Error(`end user ${endUserId} had the trial of plan ${planId}, although the lock was held`)
  const set = { planId, priceId, ...(customerId === null ? {} : { customerId }), period, inTrial: true, promotionCode }
  const line = { transactionId: null, kind, interval, isTrial: true, paidAt: now, openedAt: now, isAccepted: false }
  const named = { appId: app.id, planId, customerId: customerId ?? current?.customerId ?? null }
  const planAndCustomer = await readPlanAndCustomer(tx, named)
  await recordChange(tx, app, { before: current, owner: { endUserId, externalRef }, set, line, planAndCustomer })
}
