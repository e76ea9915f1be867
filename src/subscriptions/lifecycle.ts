import type { Interval } from '#shared/interval.ts'
import { SECOND_MS, type AppTime } from '#shared/time.ts'
import { isValidPeriod, periodFrom, type Period } from './period.ts'

/** The part of a subscription that the rules read. `currentPeriodEnd` null means lifetime. */
export interface SubscriptionState {
  readonly planId: number
  readonly priceId: number
  readonly periodStart: AppTime
  readonly currentPeriodEnd: AppTime | null
  readonly anchorDay: number | null
}

/**
 * What a payment was opened for: `start` if there was no valid subscription; `extend` for the plan that was valid, or by the renewal link;
 * `change` for another plan than the valid one; `trial` for a price's trial.
 */
export type Purpose = 'start' | 'extend' | 'change' | 'trial'

/** What a payment was opened for (R93), and what is known of it when it is paid. */
export interface Quote {
  readonly purpose: Purpose
  /** Whether the renewal link opened it: then it chooses no price. */
  readonly isByRenewalLink: boolean
  readonly planId: number
  readonly priceId: number
  /** What is sold: the price's interval, or its trial's. */
  readonly interval: Interval
  readonly openedAt: AppTime
  /** Whether the end user has had a trial of this plan by now; only purpose `trial` asks. */
  readonly isTrialUsed: boolean
  /** Whether an operator applies it although it was superseded (R134). */
  readonly isAccepted: boolean
}

/**
 * How a subscription's plan and price were last chosen (R101): by a payment that started, changed or restarted it, or by a plan switch, an
 * import or an operator's end. The last three count as opened and paid at their own time. An extension does not choose a plan.
 */
export interface PlanChoice {
  readonly planId: number
  /** Whether the plan was bought, rather than imported or the result of a switch from another plan. */
  readonly isBought: boolean
  readonly openedAt: AppTime
  readonly paidAt: AppTime
  /** When the present price was chosen: with the plan, or by a later checkout for another price of the plan. */
  readonly pricedAt: AppTime
}

export type Refusal = 'already_lifetime' | 'trial_already_used' | 'superseded' | 'period_guard'

/** The period that a payment gives. */
export interface AppliedEffect {
  readonly kind: 'started' | 'extended' | 'restarted'
  readonly period: Period
  /** Plan and price of the subscription afterwards. */
  readonly planId: number
  readonly priceId: number
  readonly isTrial: boolean
}

export type PaymentEffect = AppliedEffect | { readonly kind: 'refused'; readonly reason: Refusal }

/** Provider times this close count as equal (R103). */
const EQUAL_MS = 60 * SECOND_MS

/** Expired from the exact moment of the end (R110). */
export function effectiveStatus(state: Pick<SubscriptionState, 'currentPeriodEnd'>, at: AppTime): 'active' | 'expired' {
  return state.currentPeriodEnd === null || at < state.currentPeriodEnd ? 'active' : 'expired'
}

/** Whether the subscription is lifetime: it never expires and cannot be paid for again (R100). */
export function isLifetime(state: Pick<SubscriptionState, 'currentPeriodEnd'> | null): boolean {
  return state !== null && state.currentPeriodEnd === null
}

/** What a checkout that is opened `now` is for. */
export function purposeOf(current: SubscriptionState | null, planId: number, isTrial: boolean, now: AppTime): Purpose {
  if (isTrial) return 'trial'
  if (!current || effectiveStatus(current, now) === 'expired') return 'start'
  return current.planId === planId ? 'extend' : 'change'
}

/**
 * What a payment does to a subscription (R94). Checkout page, renewal page, dry runs, application and `ledger verify` all use this
 * function. `last` is the latest plan choice of `current`, null if there is no subscription or if nothing depends on it
 * (`dependsOnPlanChoice`). Times are the app's own; `paidAt` is in whole seconds.
 */
export function decide(
  current: SubscriptionState | null,
  last: PlanChoice | null,
  quote: Quote,
  paidAt: AppTime,
): PaymentEffect {
  if (isLifetime(current)) return { kind: 'refused', reason: 'already_lifetime' }
  if (quote.purpose === 'trial' && quote.isTrialUsed) return { kind: 'refused', reason: 'trial_already_used' }
  // A payment is late if the period had ended when it was made (R95).
  const valid = current && effectiveStatus(current, paidAt) === 'active' ? current : null
  if (valid && last && !quote.isAccepted && isSuperseded(valid, last, quote, paidAt))
    return { kind: 'refused', reason: 'superseded' }
  const extendedEnd = valid && isExtension(valid, quote) ? valid.currentPeriodEnd : null
  const period = extendedEnd
    ? periodFrom(extendedEnd, quote.interval, valid?.anchorDay ?? null)
    : // The first payment (R108), paid late, after the end (R97), or for another plan (R99): there is no end to continue from.
      periodFrom(paidAt, quote.interval, null)
  if (!isValidPeriod(period, quote.interval, extendedEnd)) return { kind: 'refused', reason: 'period_guard' }
  // A payment that chooses no plan keeps plan and price, unless it sets the price (R98, R104).
  const isPlanKept = extendedEnd !== null || quote.purpose === 'extend'
  const { planId, priceId } = isPlanKept && current && last && !choosesPrice(current, last, quote) ? current : quote
  const kind = !current ? 'started' : extendedEnd ? 'extended' : 'restarted'
  return { kind, period, planId, priceId, isTrial: quote.purpose === 'trial' }
}

/**
 * Whether `decide` uses the latest plan choice at all. For the plan and price that the subscription has, the outcome does not depend
 * on it, so the caller can skip reading the ledger, which grows with each renewal.
 */
export function dependsOnPlanChoice(
  current: SubscriptionState | null,
  { purpose, planId, priceId }: Pick<Quote, 'purpose' | 'planId' | 'priceId'>,
): boolean {
  return current !== null && (purpose === 'trial' || current.planId !== planId || current.priceId !== priceId)
}

/** Whether a later plan choice supersedes a payment made while the subscription is valid (R83, R102, R104). */
function isSuperseded(valid: SubscriptionState, last: PlanChoice, quote: Quote, paidAt: AppTime): boolean {
  const isOtherPlan = valid.planId !== quote.planId
  switch (quote.purpose) {
    case 'trial':
      return true
    case 'extend':
      return isOtherPlan && last.isBought
    case 'start':
    case 'change':
      return isOtherPlan && (quote.openedAt < last.openedAt || paidAt.getTime() < last.paidAt.getTime() - EQUAL_MS)
  }
}

/** Whether the payment continues the valid period (R96, R104); otherwise it starts a period of its own (R99). */
function isExtension(valid: SubscriptionState, { purpose, planId }: Quote): boolean {
  return purpose === 'extend' || (purpose !== 'trial' && valid.planId === planId)
}

/** A checkout for the same plan sets its price, unless the present one was chosen after the checkout was opened (R96, R98). */
function choosesPrice(current: SubscriptionState, last: PlanChoice, quote: Quote): boolean {
  return !quote.isByRenewalLink && quote.planId === current.planId && quote.openedAt >= last.pricedAt
}

/** The fields of a ledger line that later payments depend on. */
export interface ChoiceLine {
  readonly kind: 'started' | 'extended' | 'restarted' | 'imported' | 'switched' | 'ended'
  /** Null if it is not a payment: an import, a plan switch, an operator's end. */
  readonly purpose: Purpose | null
  readonly isByRenewalLink: boolean
  /** The subscription's plan after it. */
  readonly planId: number
  /** The plan that was paid for. */
  readonly soldPlanId: number
  readonly openedAt: AppTime
  /** When it was paid, or decided. */
  readonly paidAt: AppTime
}

/** The latest plan choice once `line` follows `last`; `last` is null before the first line. */
export function planChoiceAfter(last: PlanChoice | null, line: ChoiceLine): PlanChoice {
  const { planId, openedAt, paidAt } = line
  const isPlanKept = line.kind === 'ended' || line.kind === 'extended' || line.purpose === 'extend'
  if (!last || !isPlanKept) return { planId, isBought: isPlanBought(last, line), openedAt, paidAt, pricedAt: openedAt }
  if (line.kind === 'ended') return { ...last, openedAt, paidAt }
  const isPriceSet = !line.isByRenewalLink && line.soldPlanId === planId && openedAt > last.pricedAt
  const pricedAt = isPriceSet ? openedAt : last.pricedAt
  if (line.kind === 'extended') return { ...last, pricedAt }
  // A late extension chooses no plan: of it and the choice before it, the later opening time counts (R105).
  return { ...last, openedAt: openedAt > last.openedAt ? openedAt : last.openedAt, paidAt, pricedAt }
}

/** A switch to another price of a plan leaves it bought (R104). */
function isPlanBought(last: PlanChoice | null, { purpose, planId }: ChoiceLine): boolean {
  return purpose !== null || (last?.planId === planId && last.isBought)
}
