import { appNow } from '#apps/app-time.ts'
import type { NotifiedApp } from '#apps/store.ts'
import type { Tx } from '#commands/transaction.ts'
import { findPrice } from '#plans/store.ts'
import type { Interval } from '#shared/interval.ts'
import { formatTimestampOrNull, wholeSeconds, type AppTime } from '#shared/time.ts'
import { emitEvent } from '#webhooks/emit-event.ts'
import { decideOn, decidePayment, type PaymentSubject, intervalOf, type QuotedPayment } from './decide-payment.ts'
import type { Refusal } from './lifecycle.ts'
import type { Period } from './period.ts'
import { presentSubject, type SubscriptionView } from './present.ts'
import { recordChange } from './record-change.ts'
import {
  insertApplication,
  insertTrialGrant,
  wasRenewedByPayment,
  type PaymentApplication,
  type Subscription,
} from './store.ts'

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
  const renewsPeriod = current !== null && !(await isRenewedAlready(tx, current, payment))
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
  const saved = await recordChange(tx, app, current ?? payment, change, occasion)
  const line = {
    transactionId: payment.transactionId,
    kind: effect.kind,
    interval,
    isTrial,
    appliedAt: payment.paidAt,
    openedAt: payment.createdAt,
    isAccepted: payment.isAccepted ?? false,
  }
  await writeLedger(tx, saved, current, effect.period, line)
  return null
}

/** Adds the line that explains plan, price and period of `saved`. */
export async function writeLedger(
  tx: Tx,
  saved: Subscription,
  before: Subscription | null,
  period: Period,
  line: Pick<PaymentApplication, 'transactionId' | 'kind' | 'isTrial' | 'appliedAt' | 'openedAt'> & {
    readonly interval: Interval
    readonly isAccepted?: boolean
  },
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
    openedAt: line.openedAt,
    isAccepted: line.isAccepted ?? false,
  })
}

/**
 * Adds the line of a decision that is no payment: an import, a plan switch, or an operator's end. It counts as opened and paid at its own
 * time (contract 7).
 * `before` is null if there was no subscription.
 */
export async function writeDecision(
  tx: Tx,
  app: NotifiedApp,
  kind: 'imported' | 'switched' | 'ended',
  saved: Subscription,
  before: Subscription | null,
): Promise<void> {
  const now = appNow(app, tx.now)
  const found = await findPrice(tx, app.id, saved.priceId)
  if (!found) throw new Error(`subscription ${saved.id} names a price that is not there`)
  const period = { start: saved.periodStart, end: saved.currentPeriodEnd, anchorDay: saved.anchorDay }
  const interval = intervalOf(found.price, false)
  const line = {
    transactionId: null,
    kind,
    interval,
    isTrial: saved.inTrial,
    appliedAt: wholeSeconds(now),
    openedAt: now,
  }
  await writeLedger(tx, saved, before, period, line)
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
