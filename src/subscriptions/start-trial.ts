import type { App } from '#apps/store.ts'
import type { Tx } from '#commands/transaction.ts'
import type { PriceWithPlan } from '#plans/store.ts'
import type { AppTime } from '#shared/time.ts'
import { decideOn, type DecidedPayment } from './decide-payment.ts'
import { readPlanAndCustomer } from './present.ts'
import { recordChange } from './record-change.ts'
import { insertTrialGrant, type Subscription } from './store.ts'

/**
 * The trial that a checkout of this price grants now, or null (R81). `now` is the app's own time; `endsAt` is the
 * trial's end if it starts now.
 */
export async function trialOnOffer(
  tx: Tx,
  found: PriceWithPlan,
  endUserId: number,
  current: Subscription | null,
  now: AppTime,
): Promise<{ amount: number; endsAt: AppTime } | null> {
  const { trialAmount } = found.price
  if (trialAmount === null) return null
  const { effect } = await decideTrial(tx, found, endUserId, current, now)
  if (effect.kind === 'refused' || !effect.period.end) return null
  return { amount: trialAmount, endsAt: effect.period.end }
}

/** Starts a free trial during the checkout call; returns false if none is granted. The renewals after it get the discount of `promotionCode`. */
export async function startFreeTrial(
  tx: Tx,
  app: App,
  found: PriceWithPlan,
  subject: { readonly endUserId: number; readonly externalRef: string; readonly customerId: number | null },
  current: Subscription | null,
  { now, promotionCode }: { readonly now: AppTime; readonly promotionCode: string | null },
): Promise<boolean> {
  const { endUserId, externalRef, customerId } = subject
  const { effect, interval } = await decideTrial(tx, found, endUserId, current, now)
  if (effect.kind === 'refused') return false
  const { kind, planId, priceId, period } = effect
  if (!(await insertTrialGrant(tx, { appId: app.id, endUserId, planId, transactionId: null, grantedAt: now })))
    return false
  const setsCustomer = customerId === null ? {} : { customerId }
  const set = { planId, priceId, ...setsCustomer, period, inTrial: true, promotionCode }
  const line = { transactionId: null, kind, interval, isTrial: true, paidAt: now, openedAt: now, isAccepted: false }
  const named = { appId: app.id, planId, customerId: customerId ?? current?.customerId ?? null }
  const planAndCustomer = await readPlanAndCustomer(tx, named)
  await recordChange(tx, app, current ?? { endUserId, externalRef }, { set, line, planAndCustomer })
  return true
}

async function decideTrial(
  tx: Tx,
  found: PriceWithPlan,
  endUserId: number,
  current: Subscription | null,
  now: AppTime,
): Promise<DecidedPayment> {
  const quote = { purpose: 'trial', isByRenewalLink: false, openedAt: now, isAccepted: false } as const
  return decideOn(tx, { ...found, current, endUserId }, quote, now)
}
