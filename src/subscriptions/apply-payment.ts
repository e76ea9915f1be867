import type { App } from '#apps/store.ts'
import type { Tx } from '#commands/transaction.ts'
import { findPrice, type Price } from '#plans/store.ts'
import type { Interval } from '#shared/interval.ts'
import { formatTimestampOrNull, type AppTime } from '#shared/time.ts'
import { emitEvent } from '#webhooks/emit-event.ts'
import { effectOfPayment } from './lifecycle.ts'
import type { Period } from './period.ts'
import { presentSubject, type SubscriptionView } from './present.ts'
import { recordChange } from './record-change.ts'
import {
  findSubscriptionOfEndUser,
  insertApplication,
  insertTrialGrant,
  wasRenewedByPayment,
  type PaymentApplication,
  type Subscription,
} from './store.ts'

/** A completed payment of a price, as a subscription sees it. Amount in the smallest unit; times in the app's own time. */
export interface AppliedPayment {
  readonly transactionId: number
  readonly endUserId: number
  readonly externalRef: string
  readonly priceId: number
  /** Becomes the subscription's customer; null leaves it as it is. */
  readonly customerId: number | null
  /** Whether it pays the price's trial. */
  readonly isTrial: boolean
  /** The period end that it was opened to renew; null where there was none. */
  readonly renewsEnd: AppTime | null
  readonly amount: number
  readonly currency: string
  readonly providerCode: string
  readonly paidAt: AppTime
}

export type Refusal = 'already_lifetime' | 'trial_already_used' | 'period_guard'

/** The length that a price gives: its own, or its trial's. */
export function intervalOf(price: Price, isTrial: boolean): Interval {
  if (!isTrial) return { unit: price.intervalUnit, count: price.intervalCount }
  if (price.trialIntervalUnit === null || price.trialIntervalCount === null)
    throw new Error(`price ${price.id} has no trial`)
  return { unit: price.trialIntervalUnit, count: price.trialIntervalCount }
}

/**
 * Applies a payment to the end user's subscription, under the lock of the end user. Returns why it was not applied, or null: then the
 * ledger has its line, the subscription its period, and the events are written (specification 3; contract 4).
 */
export async function applyPayment(tx: Tx, app: App, payment: AppliedPayment): Promise<Refusal | null> {
  const found = await findPrice(tx, app.id, payment.priceId)
  if (!found) throw new Error(`transaction ${payment.transactionId} names a price that is not there`)
  const { price, plan } = found
  const current = await findSubscriptionOfEndUser(tx, payment.endUserId)
  const interval = intervalOf(price, payment.isTrial)
  const effect = effectOfPayment(current, { planId: plan.id, interval }, payment.paidAt)
  if (effect.kind === 'refused') return effect.reason
  if (payment.isTrial && !(await grantTrial(tx, app, payment, plan.id))) return 'trial_already_used'
  const isRenewal = current !== null && !(await isRenewedAlready(tx, current, payment))
  const change = {
    planId: plan.id,
    priceId: price.id,
    ...(payment.customerId === null ? {} : { customerId: payment.customerId }),
    period: effect.period,
    inTrial: payment.isTrial,
  }
  const occasion = {
    transactionId: payment.transactionId,
    async announce(view: SubscriptionView) {
      if (current && isRenewal) await announceRenewal(tx, app, current, payment, view)
    },
  }
  const saved = await recordChange(tx, app, current ?? payment, change, occasion)
  const line = {
    transactionId: payment.transactionId,
    kind: effect.kind,
    interval,
    isTrial: payment.isTrial,
    appliedAt: payment.paidAt,
  }
  await writeLedger(tx, saved, current, effect.period, line)
  return null
}

/** Writes why the period of `saved` is what it is. */
export async function writeLedger(
  tx: Tx,
  saved: Subscription,
  before: Subscription | null,
  period: Period,
  line: Pick<PaymentApplication, 'transactionId' | 'kind' | 'isTrial' | 'appliedAt'> & { readonly interval: Interval },
): Promise<void> {
  await insertApplication(tx, {
    appId: saved.appId,
    subscriptionId: saved.id,
    revision: saved.revision,
    transactionId: line.transactionId,
    kind: line.kind,
    planId: saved.planId,
    priceId: saved.priceId,
    intervalUnit: line.interval.unit,
    intervalCount: line.interval.count,
    isTrial: line.isTrial,
    endBefore: before?.currentPeriodEnd ?? null,
    anchorBefore: before?.anchorDay ?? null,
    periodStart: period.start,
    endAfter: period.end,
    anchorAfter: period.anchorDay,
    appliedAt: line.appliedAt,
  })
}

async function grantTrial(tx: Tx, app: App, payment: AppliedPayment, planId: number): Promise<boolean> {
  const { endUserId, transactionId, paidAt } = payment
  return insertTrialGrant(tx, { appId: app.id, endUserId, planId, transactionId, grantedAt: paidAt })
}

/** Whether another payment renewed the period that this one was opened to renew (contract 4, `subscription.renewed`). */
async function isRenewedAlready(tx: Tx, current: Subscription, payment: AppliedPayment): Promise<boolean> {
  return payment.renewsEnd !== null && wasRenewedByPayment(tx, current.id, payment.renewsEnd)
}

async function announceRenewal(
  tx: Tx,
  app: App,
  before: Subscription,
  payment: AppliedPayment,
  view: SubscriptionView,
): Promise<void> {
  const data = {
    ...presentSubject(view),
    provider_code: payment.providerCode,
    transaction_id: payment.transactionId,
    amount: payment.amount,
    currency: payment.currency,
    previous_period_end: formatTimestampOrNull(before.currentPeriodEnd),
    current_period_end: formatTimestampOrNull(view.subscription.currentPeriodEnd),
    was_trial: before.inTrial && !payment.isTrial,
  }
  const subject = { externalRef: payment.externalRef, transactionId: payment.transactionId }
  await emitEvent(tx, app, 'subscription.renewed', data, subject)
}
