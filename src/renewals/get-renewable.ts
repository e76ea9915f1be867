import type { ReadOnly } from '#db/transaction.ts'
import { AppError, notFound } from '#shared/errors.ts'
import { findSubscriptionByRenewalToken } from '#subscriptions/store.ts'
import type { Subscription } from '#subscriptions/store.ts'

/** A subscription that ends, and so can be paid for its next period. */
export interface RenewableSubscription extends Subscription {
  currentPeriodEnd: Date
}

/** The subscription behind a renewal token. Throws `not_found` (404), and `checkout_expired` (410) for a lifetime one. */
export async function getRenewable(db: ReadOnly, renewalToken: string): Promise<RenewableSubscription> {
  const subscription = /^[0-9a-f]{64}$/.test(renewalToken)
    ? await findSubscriptionByRenewalToken(db, renewalToken)
    : null
  if (!subscription) throw notFound('renewal link')
  const { currentPeriodEnd } = subscription
  if (currentPeriodEnd === null) {
    throw new AppError('checkout_expired', 'this subscription is for life: there is nothing to renew')
  }
  return { ...subscription, currentPeriodEnd }
}
