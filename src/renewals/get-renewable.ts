import type { Context } from '#context.ts'
import type { Queries } from '#db/queries.ts'
import { admitByToken, isPageToken } from '#http/admission.ts'
import { AppError, notFound } from '#shared/errors.ts'
import { subscriptionsByRenewalToken, type Subscription } from '#subscriptions/store.ts'
import type { AppTime } from '#shared/time.ts'

/** A subscription that ends, so that a further period can be paid for. */
export interface RenewableSubscription extends Subscription {
  currentPeriodEnd: AppTime
}

/** The subscription behind a renewal token. Throws `not_found` (404), and `checkout_expired` (410) for a lifetime one. */
export async function getRenewable(db: Queries, renewalToken: string): Promise<RenewableSubscription> {
  return requireRenewable(isPageToken(renewalToken) ? await subscriptionsByRenewalToken.find(db, renewalToken) : null)
}

/** `getRenewable` as the first read of a request: also throws `rate_limited`, see `admit`. */
export async function admitToRenewable(ctx: Context, renewalToken: string): Promise<RenewableSubscription> {
  return requireRenewable(await admitByToken(ctx, renewalToken, subscriptionsByRenewalToken))
}

function requireRenewable(subscription: Subscription | null): RenewableSubscription {
  if (!subscription) throw notFound('renewal link')
  const { currentPeriodEnd } = subscription
  if (currentPeriodEnd === null) {
    throw new AppError('checkout_expired', 'this is a lifetime subscription: there is nothing to renew')
  }
  return { ...subscription, currentPeriodEnd }
}
