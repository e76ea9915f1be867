import type { NotifiedApp } from '#apps/store.ts'
import type { Tx } from '#commands/transaction.ts'
import { formatTimestampOrNull, type AppTime } from '#shared/time.ts'
import { emitEvent } from '#webhooks/emit-event.ts'
import { decideOn, decidePayment, type PaymentSubject, type QuotedPayment } from './decide-payment.ts'
import type { Refusal } from './lifecycle.ts'
import { presentSubject, type SubscriptionView } from './present.ts'
import { recordChange } from './record-change.ts'
import { insertTrialGrant, wasRenewedByPayment, type Subscription } from './store.ts'

/** A completed payment of a price, as a subscription sees it. Amount in the smallest unit; times in the app's own time. */
export interface AppliedPayment extends QuotedPayment {
  readonly appId: number
  readonly transactionId: number
  readonly endUserId: number
  readonly externalRef: string
  readonly priceId: number
  /** Becomes the subscription's customer, unless the payment is a renewal; null leaves it as it is. */
  readonly customerId: number | null
  /** The period end that it was opened to renew; null if there was none. */
  readonly renewsEnd: AppTime | null
  readonly amount: number
  readonly currency: string
  readonly providerCode: string
  readonly paidAt: AppTime
}

/**
 * Applies a payment to the end user's subscription (specification 3; contract 4): writes the period, its line in the ledger and the
 * events. Returns null, or why nothing was applied. A step, under the end user's lock; pass `subject` if its rows were read under it.
 */
export async function applyPayment(
  tx: Tx,
  app: NotifiedApp,
  payment: AppliedPayment,
  subject: PaymentSubject | null = null,
): Promise<Refusal | null> {
  const { plan, current, interval, effect } = subject
    ? await decideOn(tx, { ...subject, endUserId: payment.endUserId }, payment, payment.paidAt)
    : await decidePayment(tx, payment, payment.paidAt)
  if (effect.kind === 'refused') return effect.reason
  const { isTrial, planId, priceId } = effect
  if (isTrial && !(await grantTrial(tx, app, payment, plan.id))) return 'trial_already_used'
  const setsCustomer = payment.customerId !== null && !payment.isRenewal
  const renewsPeriod =
    current !== null && !(subject?.isRenewedAlready ?? (await isRenewedAlready(tx, current, payment)))
  const change = {
    planId,
    priceId,
    ...(setsCustomer ? { customerId: payment.customerId } : {}),
    period: effect.period,
    inTrial: isTrial,
  }
  const occasion = {
    transactionId: payment.transactionId,
    known: { plan, customers: subject?.customers ?? [] },
    async announce(view: SubscriptionView) {
      if (current && renewsPeriod) await announceRenewal(tx, app, current, payment, view)
    },
  }
  const reason = {
    transactionId: payment.transactionId,
    kind: effect.kind,
    interval,
    isTrial,
    appliedAt: payment.paidAt,
    openedAt: payment.createdAt,
    isAccepted: payment.isAccepted ?? false,
  }
  await recordChange(tx, app, current ?? payment, change, reason, occasion)
  return null
}

async function grantTrial(tx: Tx, app: NotifiedApp, payment: AppliedPayment, planId: number): Promise<boolean> {
  const { endUserId, transactionId, paidAt } = payment
  return insertTrialGrant(tx, { appId: app.id, endUserId, planId, transactionId, grantedAt: paidAt })
}

/** Whether another payment renewed the period that this one was opened to renew (contract 4, `subscription.renewed`). */
async function isRenewedAlready(tx: Tx, current: Subscription, payment: AppliedPayment): Promise<boolean> {
  return payment.renewsEnd !== null && wasRenewedByPayment(tx, current.id, payment.renewsEnd)
}

async function announceRenewal(
  tx: Tx,
  app: NotifiedApp,
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
    was_trial: before.inTrial && payment.purpose !== 'trial',
  }
  const subject = { externalRef: payment.externalRef, transactionId: payment.transactionId }
  await emitEvent(tx, app, 'subscription.renewed', data, subject)
}
