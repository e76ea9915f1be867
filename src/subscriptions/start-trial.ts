import type { App } from '#apps/store.ts'
import type { Tx } from '#commands/transaction.ts'
import type { PriceWithPlan } from '#plans/store.ts'
import type { AppTime } from '#shared/time.ts'
import { intervalOf, writeLedger } from './apply-payment.ts'
import { effectiveStatus, effectOfPayment } from './lifecycle.ts'
import { recordChange } from './record-change.ts'
import { hadTrial, insertTrialGrant, type Subscription } from './store.ts'

/**
 * The trial that a checkout of this price grants now, or null (contract 3, Trial). `now` is the app's own time; `endsAt` is the
 * trial's end if it starts now.
 */
export async function trialOnOffer(
  tx: Tx,
  { price, plan }: PriceWithPlan,
  endUserId: number,
  current: Subscription | null,
  now: AppTime,
): Promise<{ amount: number; endsAt: AppTime } | null> {
  if (price.trialAmount === null) return null
  if (current && effectiveStatus(current, now) === 'active') return null
  if (await hadTrial(tx, endUserId, plan.id)) return null
  const effect = effectOfPayment(current, { planId: plan.id, interval: intervalOf(price, true) }, now)
  if (effect.kind === 'refused' || !effect.period.end) return null
  return { amount: price.trialAmount, endsAt: effect.period.end }
}

/** Starts a free trial during the checkout call; false where the end user had one on this plan before. */
export async function startFreeTrial(
  tx: Tx,
  app: App,
  { price, plan }: PriceWithPlan,
  subject: { readonly endUserId: number; readonly externalRef: string; readonly customerId: number | null },
  current: Subscription | null,
  now: AppTime,
): Promise<boolean> {
  const { endUserId, externalRef, customerId } = subject
  const interval = intervalOf(price, true)
  const effect = effectOfPayment(current, { planId: plan.id, interval }, now)
  if (effect.kind === 'refused') return false
  if (!(await insertTrialGrant(tx, { appId: app.id, endUserId, planId: plan.id, transactionId: null, grantedAt: now })))
    return false
  const saved = await recordChange(tx, app, current ?? { endUserId, externalRef }, {
    planId: plan.id,
    priceId: price.id,
    ...(customerId === null ? {} : { customerId }),
    period: effect.period,
    inTrial: true,
  })
  const line = { transactionId: null, kind: effect.kind, interval, isTrial: true, appliedAt: now }
  await writeLedger(tx, saved, current, effect.period, line)
  return true
}
