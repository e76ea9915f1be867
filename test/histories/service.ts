import { asAppTime, type AppTime } from '#shared/time.ts'
import type { PlanChoice, ChoiceLine, Purpose, Quote, SubscriptionState } from '#subscriptions/lifecycle.ts'
import type { Transaction } from '#transactions/store.ts'
import type { Rules } from './rules.ts'
import {
  AMOUNT,
  CHECKOUT_SECONDS,
  PRICES,
  PROMOTION,
  TRIAL_AMOUNT,
  type Action,
  type Shown,
  type ShownOffer,
} from './terms.ts'

const START_MS = Date.UTC(2026, 2, 1, 10)
const at = (seconds: number): AppTime => asAppTime(new Date(START_MS + seconds * 1000))
const secondsOf = (time: Date): number => (time.getTime() - START_MS) / 1000

type Row = Pick<
  Transaction,
  | 'amount'
  | 'amountReceived'
  | 'amountRefunded'
  | 'amountUsed'
  | 'amountLeft'
  | 'flagReason'
  | 'resolution'
  | 'mode'
  | 'currency'
> & { readonly status: 'pending' | 'completed' | 'refunded' }

interface Opened {
  readonly row: Row
  readonly purpose: Purpose
  readonly isByRenewalLink: boolean
  readonly price: number
  readonly openedAt: AppTime
  readonly money: readonly { readonly paidAt: AppTime; readonly kept: number }[]
}

/** One end user as the service keeps it. */
export interface ServiceState {
  readonly now: number
  readonly subscription: SubscriptionState | null
  readonly last: PlanChoice | null
  readonly trials: readonly number[]
  readonly opened: readonly Opened[]
}

export const NEW_SERVICE: ServiceState = { now: 0, subscription: null, last: null, trials: [], opened: [] }

export function shownOf({ subscription, opened }: ServiceState): Shown {
  const end = subscription && (subscription.currentPeriodEnd ? secondsOf(subscription.currentPeriodEnd) : Infinity)
  return {
    price: subscription?.priceId ?? null,
    end,
    offers: opened.map(({ row, purpose }) => ({ purpose, ...shownRow(row) })),
  }
}

function shownRow(row: Row): Omit<ShownOffer, 'purpose'> {
  const { status, flagReason, amount, amountReceived, amountRefunded, amountUsed, amountLeft } = row
  const money = { received: amountReceived, refunded: amountRefunded, used: amountUsed, left: amountLeft }
  return { status, flag: flagReason, amount, ...money }
}

/** The service's pure rules in the order in which its commands call them. */
export class Service {
  readonly #rules: Rules

  constructor(rules: Rules) {
    this.#rules = rules
  }

  /** The state after the action; null where the service refuses it. */
  act(state: ServiceState, action: Action): ServiceState | null {
    switch (action.kind) {
      case 'pass':
        return { ...state, now: state.now + action.seconds }
      case 'open':
        return this.#open(state, action.price, action.isDiscounted)
      case 'renew':
        return this.#renew(state)
      case 'switch':
        return this.#switch(state, action.price)
      case 'end':
        return this.#end(state)
      case 'pay':
        return this.#pay(state, action.offer, action.how)
      case 'refund':
        return this.#refund(state, action.offer)
      case 'complete':
        return this.#complete(state, action.offer)
      case 'move':
        return this.#move(state, action.offer, action.to)
    }
  }

  #open(state: ServiceState, price: number, isDiscounted: boolean): ServiceState | null {
    const { purposeOf, isLifetime, effectiveStatus, discounted } = this.#rules
    const { subscription, trials } = state
    if (isLifetime(subscription)) return null
    const now = at(state.now)
    const { plan, trialDays } = PRICES[price]!
    const isValid = subscription !== null && effectiveStatus(subscription, now) === 'active'
    const isTrial = trialDays !== null && !isValid && !trials.includes(plan)
    const full = { amount: isTrial ? TRIAL_AMOUNT : AMOUNT, currency: 'VND' }
    const { amount } = discounted(isDiscounted ? PROMOTION : null, full)
    return withNew(state, purposeOf(subscription, plan, isTrial, now), price, amount, false)
  }

  #renew(state: ServiceState): ServiceState | null {
    const { subscription, opened, now } = state
    if (!subscription || this.#rules.isLifetime(subscription)) return null
    const latest = opened.findLast(({ isByRenewalLink }) => isByRenewalLink)
    const isOpen =
      latest?.row.status === 'pending' &&
      now < secondsOf(latest.openedAt) + CHECKOUT_SECONDS &&
      latest.price === subscription.priceId
    return isOpen ? state : withNew(state, 'extend', subscription.priceId, AMOUNT, true)
  }

  #switch(state: ServiceState, price: number): ServiceState | null {
    if (!state.subscription || this.#rules.isLifetime(state.subscription)) return null
    const set = { ...state.subscription, planId: PRICES[price]!.plan, priceId: price }
    return this.#write(state, 'switched', set, null)
  }

  #end(state: ServiceState): ServiceState | null {
    const { subscription } = state
    const { isLifetime, effectiveStatus } = this.#rules
    const now = at(state.now)
    if (!subscription || isLifetime(subscription) || effectiveStatus(subscription, now) === 'expired') return null
    return this.#write(state, 'ended', { ...subscription, currentPeriodEnd: now }, null)
  }

  #pay(state: ServiceState, index: number, how: 'now' | 'late' | 'part'): ServiceState | null {
    const { row, openedAt } = state.opened[index]!
    const due = this.#rules.dueOf(row)
    if (how === 'part' && (row.status !== 'pending' || due < 2)) return null
    const whole = row.status === 'pending' ? due : row.amount
    const paidAt = how === 'late' ? openedAt : at(state.now)
    return this.#receive(state, index, how === 'part' ? Math.floor(due / 2) : whole, paidAt)
  }

  /** As `receiveMoney` and `completeTransaction`. */
  #receive(state: ServiceState, index: number, amount: number, paidAt: AppTime): ServiceState {
    const { balanceAfterArrival, keptOf, balanceAfterCompletion } = this.#rules
    const before = state.opened[index]!
    const one = { ...before, money: [...before.money, { paidAt, kept: amount }] }
    const balance = balanceAfterArrival(before.row, amount)
    const withRow = (changes: Partial<Row>): ServiceState =>
      withOpened(state, index, { ...one, row: { ...before.row, ...balance, ...changes } })
    if (before.row.status !== 'pending') return withRow({ flagReason: before.row.flagReason ?? 'duplicate_payment' })
    if (keptOf(balance) < before.row.amount) return withRow({ amountLeft: keptOf(balance), flagReason: 'underpaid' })
    const moment = paidAt < before.openedAt ? before.openedAt : paidAt
    const given = this.#apply(state, before, moment, before.openedAt, false)
    const refusal = typeof given === 'string' ? given : null
    const row = {
      ...before.row,
      ...balanceAfterCompletion(balance, before.row.amount, refusal === null),
      status: 'completed' as const,
      flagReason: refusal as Row['flagReason'],
    }
    return withOpened(typeof given === 'string' ? state : given, index, { ...one, row })
  }

  /** The state with the period that was paid for, or why it is not given. */
  #apply(
    state: ServiceState,
    { purpose, isByRenewalLink, price }: Opened,
    paidAt: AppTime,
    openedAt: AppTime,
    isAccepted: boolean,
  ): ServiceState | string {
    const { plan: planId, days, trialDays } = PRICES[price]!
    const length = purpose === 'trial' ? trialDays : days
    const interval =
      length === null ? ({ unit: 'lifetime', count: 1 } as const) : ({ unit: 'day', count: length } as const)
    const isTrialUsed = state.trials.includes(planId)
    const quote: Quote = {
      purpose,
      isByRenewalLink,
      planId,
      priceId: price,
      interval,
      openedAt,
      isTrialUsed,
      isAccepted,
    }
    const effect = this.#rules.decide(state.subscription, state.last, quote, paidAt)
    if (effect.kind === 'refused') return effect.reason
    const { start: periodStart, end: currentPeriodEnd, anchorDay } = effect.period
    const set = { planId: effect.planId, priceId: effect.priceId, periodStart, currentPeriodEnd, anchorDay }
    const trials = effect.isTrial ? [...state.trials, planId].sort() : state.trials
    return this.#write({ ...state, trials }, effect.kind, set, { quote, paidAt })
  }

  #refund(state: ServiceState, index: number): ServiceState | null {
    const { resolutionRefusalOf, amountToRefund, balanceAfterRefund, keptOf } = this.#rules
    const one = state.opened[index]!
    if (resolutionRefusalOf(one.row as Transaction, 'refund', null) !== null) return null
    const amount = amountToRefund(one.row as Transaction, null)
    const balance = balanceAfterRefund(one.row, amount)
    const isResolved = balance.amountLeft === 0 && (one.row.amountLeft > 0 || keptOf(balance) === 0)
    const row: Row = {
      ...one.row,
      ...balance,
      flagReason: balance.amountLeft === 0 ? null : one.row.flagReason,
      ...(isResolved ? { resolution: 'refunded' as const } : {}),
      ...(keptOf(balance) === 0 ? { status: 'refunded' as const } : {}),
    }
    return withOpened(state, index, { ...one, row, money: without(one.money, amount) })
  }

  /** As `applySuperseded`. */
  #complete(state: ServiceState, index: number): ServiceState | null {
    const one = state.opened[index]!
    if (!this.#rules.wasSuperseded(one.row as Transaction)) return null
    const now = at(state.now)
    const given = this.#apply(state, one, now, one.purpose === 'extend' ? one.openedAt : now, true)
    if (typeof given === 'string') return null
    const row: Row = {
      ...one.row,
      ...this.#rules.balanceAfterCompletion(one.row, one.row.amount, true),
      flagReason: null,
      resolution: 'completed',
    }
    return withOpened(given, index, { ...one, row })
  }

  #move(state: ServiceState, index: number, to: number): ServiceState | null {
    const source = state.opened[index]!
    const newest = source.money.findLast(({ kept }) => kept > 0)
    if (!newest || state.opened[to]!.row.status !== 'pending') return null
    const amount = Math.min(newest.kept, this.#rules.movableOf(source.row))
    if (amount === 0) return null
    const balance = this.#rules.balanceAfterMove(source.row, amount)
    const isCleared = source.row.flagReason !== null && balance.amountLeft === 0
    const row: Row = {
      ...source.row,
      ...balance,
      ...(isCleared ? { flagReason: null, resolution: 'moved' as const } : {}),
    }
    const taken = withOpened(state, index, { ...source, row, money: without(source.money, amount) })
    return this.#receive(taken, to, amount, newest.paidAt)
  }

  /** As `recordChange`: the subscription, and the line of its ledger. */
  #write(
    state: ServiceState,
    kind: ChoiceLine['kind'],
    set: SubscriptionState,
    payment: { readonly quote: Quote; readonly paidAt: AppTime } | null,
  ): ServiceState {
    const now = at(state.now)
    const last = this.#rules.planChoiceAfter(state.last, {
      kind,
      purpose: payment?.quote.purpose ?? null,
      isByRenewalLink: payment?.quote.isByRenewalLink ?? false,
      planId: set.planId,
      soldPlanId: payment?.quote.planId ?? set.planId,
      openedAt: payment?.quote.openedAt ?? now,
      paidAt: payment?.paidAt ?? now,
    })
    return { ...state, subscription: set, last }
  }
}

function withNew(
  state: ServiceState,
  purpose: Purpose,
  price: number,
  amount: number,
  isByRenewalLink: boolean,
): ServiceState {
  const row: Row = {
    mode: 'subscription',
    currency: 'VND',
    amount,
    amountReceived: 0,
    amountRefunded: 0,
    amountUsed: 0,
    amountLeft: 0,
    flagReason: null,
    resolution: null,
    status: 'pending',
  }
  const one: Opened = { row, purpose, isByRenewalLink, price, openedAt: at(state.now), money: [] }
  return { ...state, opened: [...state.opened, one] }
}

function withOpened(state: ServiceState, index: number, one: Opened): ServiceState {
  return { ...state, opened: state.opened.with(index, one) }
}

function without(money: Opened['money'], amount: number): Opened['money'] {
  let rest = amount
  const kept = money.toReversed().map((one) => {
    const share = Math.min(rest, one.kept)
    rest -= share
    return { ...one, kept: one.kept - share }
  })
  return kept.toReversed().filter((one) => one.kept > 0)
}
