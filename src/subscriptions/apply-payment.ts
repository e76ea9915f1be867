import type { NotifiedApp } from '#apps/store.ts'
import type { Tx } from '#commands/transaction.ts'
import { formatTimestampOrNull, type AppTime } from '#shared/time.ts'
import type { Emission } from '#webhooks/emit-event.ts'
import { decideOn, type PaymentSubject, type QuotedPayment } from './decide-payment.ts'
import type { PaymentEffect, Refusal } from './lifecycle.ts'
import { presentSubject, type SubscriptionNames, type SubscriptionView } from './present.ts'
import { recordChange } from './record-change.ts'
import { insertTrialGrant, type Subscription } from './store.ts'

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
 * Applies a payment to the end user's subscription (R106): writes the period, its line in the ledger and the events. Returns null, or the
 * reason why nothing was applied. A step, under the end user's lock; `subject` was read under it, too.
 */
export async function applyPayment(
  tx: Tx,
  app: NotifiedApp,
  payment: AppliedPayment,
  subject: PaymentSubject,
): Promise<Refusal | null> {
  const { current } = subject
  const { interval, effect } = await decideOn(tx, { ...subject, endUserId: payment.endUserId }, payment, payment.paidAt)
  if (effect.kind === 'refused') return effect.reason
  const { isTrial, planId, priceId, period, kind } = effect
  if (isTrial && !(await grantTrial(tx, app, payment, planId))) return 'trial_already_used'
  const setsCustomer = payment.customerId !== null && !payment.isRenewal
  const set = {
    planId,
    priceId,
    ...(setsCustomer ? { customerId: payment.customerId } : {}),
    ...lastingDiscount(subject, payment, effect),
    period,
    inTrial: isTrial,
  }
  const reason = {
    transactionId: payment.transactionId,
    kind,
    interval,
    isTrial,
    appliedAt: payment.paidAt,
    openedAt: payment.createdAt,
    isAccepted: payment.isAccepted ?? false,
  }
  await recordChange(tx, app, current ?? payment, {
    set,
    reason,
    names: namesAfter(subject, effect, setsCustomer),
    transactionId: payment.transactionId,
    announce: (view) => (current && !subject.isRenewedAlready ? [renewalOf(app, current, payment, view)] : []),
  })
  return null
}

/**
 * The discount of the renewals from now on (R357): a promotion for every period that the payment names, for the plan that the payer now
 * has. A payment that chooses a new period, or another plan, ends an earlier discount; an extension keeps it.
 */
function lastingDiscount(
  { plan, current, promotion }: PaymentSubject,
  { isRenewal, purpose }: AppliedPayment,
  { kind, planId }: Extract<PaymentEffect, { planId: number }>,
): { readonly promotionCode?: string | null } {
  if (promotion?.everyPeriod && !isRenewal && planId === plan.id) return { promotionCode: promotion.code }
  const isKept = current?.planId === planId && (kind === 'extended' || purpose === 'extend')
  return isKept ? {} : { promotionCode: null }
}

/** The plan and the customer of the subscription once the payment is applied. */
function namesAfter(
  { plan, currentPlan, customer, currentCustomer }: PaymentSubject,
  { planId }: Extract<PaymentEffect, { planId: number }>,
  setsCustomer: boolean,
): SubscriptionNames {
  const named = planId === plan.id ? plan : currentPlan
  if (!named) throw new Error(`a payment gives plan ${planId}, which is neither its own nor the present one`)
  return { plan: named, customer: setsCustomer ? customer : currentCustomer }
}

async function grantTrial(tx: Tx, app: NotifiedApp, payment: AppliedPayment, planId: number): Promise<boolean> {
  const { endUserId, transactionId, paidAt } = payment
  return insertTrialGrant(tx, { appId: app.id, endUserId, planId, transactionId, grantedAt: paidAt })
}

function renewalOf(
  app: NotifiedApp,
  before: Subscription,
  payment: AppliedPayment,
  view: SubscriptionView,
): Emission<'subscription.renewed'> {
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
  return { app, type: 'subscription.renewed', data, subject }
}
