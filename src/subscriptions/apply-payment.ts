import type { NotifiedApp } from '#apps/store.ts'
import type { Tx } from '#commands/transaction.ts'
import type { NamedPlan } from '#plans/store.ts'
import { formatTimestampOrNull, type AppTime } from '#shared/time.ts'
import type { Emission } from '#webhooks/emit-event.ts'
import { decideOn, intervalOf, type SubscriptionRows } from './decide-payment.ts'
import type { AppliedEffect, Refusal } from './lifecycle.ts'
import { presentSubject } from './present.ts'
import { recordChange } from './record-change.ts'
import {
  insertTrialGrant,
  wasRenewed,
  type DecidedSubscription,
  type Subscription,
  type PlanAndCustomer,
  type SubscriptionView,
} from './store.ts'

/** A transaction that is paid, as a subscription sees it. */
export interface PaidTransaction {
  readonly transactionId: number
  readonly endUserId: number
  readonly externalRef: string
  /** Becomes the subscription's customer, unless the renewal link opened the transaction; null leaves it as it is. */
  readonly customerId: number | null
  /** What was paid, in the smallest unit: less than what was due if an operator accepted less (R134), never a surplus. */
  readonly amount: number
  readonly currency: string
  readonly providerCode: string
  /** In the app's own time and whole seconds. */
  readonly paidAt: AppTime
}

/**
 * Applies a payment to the end user's subscription (R106): writes the period, its ledger line and the events. Returns null, or the reason
 * why nothing was applied. A step, under the end user's lock; `rows` were read under it.
 */
export async function applyPayment(
  tx: Tx,
  app: NotifiedApp,
  paid: PaidTransaction,
  rows: SubscriptionRows,
): Promise<Refusal | null> {
  const { current, quote } = rows
  const { transactionId, endUserId, customerId, paidAt } = paid
  const effect = await decideOn(tx, { ...rows, endUserId }, quote, paidAt)
  if (effect.kind === 'refused') return effect.reason
  const { isTrial, planId, priceId, period, kind } = effect
  if (isTrial && !(await grantTrial(tx, app, paid, planId))) return 'trial_already_used'
  const setsCustomer = customerId !== null && !quote.isByRenewalLink
  const set = {
    planId,
    priceId,
    ...(setsCustomer ? { customerId } : {}),
    promotionCode: lastingDiscount(rows, effect),
    period,
    inTrial: isTrial,
  }
  const interval = intervalOf(rows.price, isTrial)
  const { openedAt, isAccepted } = quote
  // Not if another payment has renewed the period that this one was opened to renew.
  const isRenewal = current !== null && !(await wasRenewed(tx, current, rows.renewsEnd))
  await recordChange(tx, app, {
    before: current,
    owner: paid,
    set,
    line: { transactionId, kind, interval, isTrial, paidAt, openedAt, isAccepted },
    planAndCustomer: planAndCustomerAfter(rows, effect, setsCustomer),
    announce: (view) => (isRenewal ? [renewalOf(app, current, paid, view)] : []),
  })
  return null
}

interface RowsOfDiscount extends Pick<SubscriptionRows, 'promotion' | 'quote'> {
  readonly plan: Pick<NamedPlan, 'id'>
  readonly current: DecidedSubscription | null
}

/**
 * The code of the discount on the renewals from now on (R357), null for none: a promotion for every period that the payment names, for the
 * plan that the payer now has. A payment that chooses a new period, or another plan, ends an earlier discount; an extension keeps it.
 */
export function lastingDiscount(
  { plan, current, promotion, quote }: RowsOfDiscount,
  { kind, planId }: AppliedEffect,
): string | null {
  if (promotion?.everyPeriod && !quote.isByRenewalLink && planId === plan.id) return promotion.code
  const isKept = current?.planId === planId && (kind === 'extended' || quote.purpose === 'extend')
  return isKept ? current.promotionCode : null
}

/** The plan and the customer of the subscription once the payment is applied. */
function planAndCustomerAfter(
  { plan, currentPlan, customer, currentCustomer }: SubscriptionRows,
  { planId }: AppliedEffect,
  setsCustomer: boolean,
): PlanAndCustomer {
  const named = planId === plan.id ? plan : currentPlan
  if (!named) throw new Error(`a payment gives plan ${planId}, which is neither its own nor the present one`)
  return { plan: named, customer: setsCustomer ? customer : currentCustomer }
}

/** False if the end user has the trial from another transaction: `decide` saw none, but the unique key does (R80). */
async function grantTrial(tx: Tx, app: NotifiedApp, paid: PaidTransaction, planId: number): Promise<boolean> {
  const { endUserId, transactionId, paidAt } = paid
  return insertTrialGrant(tx, { appId: app.id, endUserId, planId, transactionId, grantedAt: paidAt })
}

function renewalOf(
  app: NotifiedApp,
  before: Subscription,
  { transactionId, amount, currency, providerCode }: PaidTransaction,
  view: SubscriptionView,
): Emission {
  const data = {
    ...presentSubject(view),
    provider_code: providerCode,
    transaction_id: transactionId,
    amount,
    currency,
    previous_period_end: formatTimestampOrNull(before.currentPeriodEnd),
    current_period_end: formatTimestampOrNull(view.subscription.currentPeriodEnd),
    was_trial: before.inTrial && !view.subscription.inTrial,
  }
  return { app, type: 'subscription.renewed', data }
}
