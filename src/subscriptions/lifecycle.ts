import type { Interval } from '#shared/interval.ts'
import type { AppTime } from '#shared/time.ts'
import { isSoundPeriod, periodFrom, type Period } from './period.ts'

/** What the rules need to know of a subscription. `currentPeriodEnd` null means lifetime. */
export interface SubscriptionState {
  readonly planId: number
  readonly periodStart: AppTime
  readonly currentPeriodEnd: AppTime | null
  readonly anchorDay: number | null
}

/** What is paid for: a price's interval, or its trial's. */
export interface Terms {
  readonly planId: number
  readonly interval: Interval
}

export type PaymentEffect =
  | { readonly kind: 'started' | 'extended' | 'restarted'; readonly period: Period }
  | { readonly kind: 'refused'; readonly reason: 'already_lifetime' | 'period_guard' }

/** Expired from the very moment of the end (contract 4, Expiry). */
export function effectiveStatus(
  state: Pick<SubscriptionState, 'currentPeriodEnd'>,
  now: AppTime,
): 'active' | 'expired' {
  return state.currentPeriodEnd === null || now < state.currentPeriodEnd ? 'active' : 'expired'
}

export function isLifetime(state: Pick<SubscriptionState, 'currentPeriodEnd'> | null): boolean {
  return state !== null && state.currentPeriodEnd === null
}

/**
 * What a payment does to a subscription (specification 3; contract 4, "Which payments extend"). The one function behind preview,
 * checkout, renewal page and application. Times are the app's own, in whole seconds.
 */
export function effectOfPayment(current: SubscriptionState | null, terms: Terms, paidAt: AppTime): PaymentEffect {
  if (isLifetime(current)) return { kind: 'refused', reason: 'already_lifetime' }
  const extendedEnd = current && extendableEnd(current, terms, paidAt)
  const period = extendedEnd
    ? periodFrom(extendedEnd, terms.interval, current.anchorDay)
    : periodFrom(paidAt, terms.interval, null)
  if (!isSoundPeriod(period, terms.interval, extendedEnd)) return { kind: 'refused', reason: 'period_guard' }
  if (!current) return { kind: 'started', period }
  return { kind: extendedEnd ? 'extended' : 'restarted', period }
}

/** The end that a payment for `terms` continues from; null where a new period starts at payment time. */
function extendableEnd(current: SubscriptionState, terms: Terms, paidAt: AppTime): AppTime | null {
  const isValid = effectiveStatus(current, paidAt) === 'active'
  return isValid && current.planId === terms.planId ? current.currentPeriodEnd : null
}
