import {
  AMOUNT,
  CHECKOUT_SECONDS,
  PRICES,
  PROMOTION,
  TRIAL_AMOUNT,
  type Action,
  type Flag,
  type Shown,
  type ShownOffer,
} from './terms.ts'

const DAY = 86_400
const EQUAL_SECONDS = 60

/** A payment that was opened, as the rules tell of it. Times in seconds. */
export interface ModelOffer extends ShownOffer {
  readonly isByRenewalLink: boolean
  readonly price: number
  readonly opened: number
  readonly flag: Flag | null
  /** Whether a refund settled it: a repeated one does nothing. */
  readonly isSettled: boolean
  /** Its money, oldest first. */
  readonly money: readonly { readonly paid: number; readonly kept: number }[]
}

/** One end user, by the rules R94 to R136 as literally as possible. It shares no code with the service. */
export interface Model {
  readonly now: number
  readonly held: { readonly price: number; readonly end: number } | null
  /** The latest plan choice (R101), and when the present price was chosen. */
  readonly choice: {
    readonly opened: number
    readonly paid: number
    readonly bought: boolean
    readonly priced: number
  }
  readonly trials: readonly number[]
  readonly offers: readonly ModelOffer[]
}

export const NEW_MODEL: Model = {
  now: 0,
  held: null,
  choice: { opened: -Infinity, paid: -Infinity, bought: false, priced: -Infinity },
  trials: [],
  offers: [],
}

export function shownOf({ held, offers }: Model): Shown {
  return { price: held?.price ?? null, end: held?.end ?? null, offers }
}

/** The model after the action; null where the service must refuse it. */
export function act(model: Model, action: Action): Model | null {
  switch (action.kind) {
    case 'pass':
      return { ...model, now: model.now + action.seconds }
    case 'open':
      return open(model, action.price, action.isDiscounted)
    case 'renew':
      return renew(model)
    case 'switch':
      return switchTo(model, action.price)
    case 'end':
      return end(model)
    case 'pay':
      return pay(model, action.offer, action.how)
    case 'refund':
      return refund(model, action.offer)
    case 'complete':
      return complete(model, action.offer)
    case 'move':
      return move(model, action.offer, action.to)
  }
}

const planOf = (price: number): number => PRICES[price]!.plan
const isForEver = ({ held }: Model): boolean => held?.end === Infinity

function isValid({ held }: Model, at: number): boolean {
  return held !== null && at < held.end
}

function open(model: Model, price: number, isDiscounted: boolean): Model | null {
  if (isForEver(model)) return null
  const valid = isValid(model, model.now)
  const hasTrial = PRICES[price]!.trialDays !== null && !valid && !model.trials.includes(planOf(price))
  const isSamePlan = model.held !== null && planOf(model.held.price) === planOf(price)
  const purpose = hasTrial ? 'trial' : !valid ? 'start' : isSamePlan ? 'extend' : 'change'
  const full = hasTrial ? TRIAL_AMOUNT : AMOUNT
  const amount = isDiscounted ? full - Math.floor((full * PROMOTION.percent) / 100) : full
  return { ...model, offers: [...model.offers, newOffer(model.now, purpose, price, amount, false)] }
}

function renew(model: Model): Model | null {
  const { held, offers, now } = model
  if (!held || isForEver(model)) return null
  const latest = offers.findLast(({ isByRenewalLink }) => isByRenewalLink)
  const isOpen = latest?.status === 'pending' && now < latest.opened + CHECKOUT_SECONDS && latest.price === held.price
  return isOpen ? model : { ...model, offers: [...offers, newOffer(now, 'extend', held.price, AMOUNT, true)] }
}

function newOffer(
  opened: number,
  purpose: ModelOffer['purpose'],
  price: number,
  amount: number,
  isByRenewalLink: boolean,
): ModelOffer {
  const money = { received: 0, refunded: 0, used: 0, left: 0, money: [] }
  return { purpose, isByRenewalLink, price, opened, status: 'pending', flag: null, amount, ...money, isSettled: false }
}

function switchTo(model: Model, price: number): Model | null {
  const { held, now } = model
  if (!held || isForEver(model)) return null
  const bought = model.choice.bought && planOf(held.price) === planOf(price)
  const choice = { opened: now, paid: now, bought, priced: now }
  return { ...model, held: { ...held, price }, choice }
}

function end(model: Model): Model | null {
  const { held, now, choice } = model
  if (!held || isForEver(model) || !isValid(model, now)) return null
  return { ...model, held: { ...held, end: now }, choice: { ...choice, opened: now, paid: now } }
}

function pay(model: Model, index: number, how: 'now' | 'late' | 'part'): Model | null {
  const offer = model.offers[index]!
  const due = Math.max(0, offer.amount - (offer.received - offer.refunded))
  if (how === 'part' && (offer.status !== 'pending' || due < 2)) return null
  const whole = offer.status === 'pending' ? due : offer.amount
  const paid = how === 'late' ? offer.opened : model.now
  return arrive(model, index, how === 'part' ? Math.floor(due / 2) : whole, paid)
}

/** R120 to R123: a part waits, enough completes, and what comes after that is a duplicate. */
function arrive(model: Model, index: number, amount: number, paid: number): Model {
  const before = model.offers[index]!
  const received = before.received + amount
  const kept = received - before.refunded
  const offer = { ...before, received, money: [...before.money, { paid, kept: amount }] }
  if (before.status !== 'pending')
    return withOffer(model, index, { ...offer, left: before.left + amount, flag: before.flag ?? 'duplicate_payment' })
  if (kept < before.amount) return withOffer(model, index, { ...offer, left: kept, flag: 'underpaid' })
  const moment = Math.max(before.opened, paid)
  const flag = refusal(model, offer, moment)
  if (flag !== null) return withOffer(model, index, { ...offer, status: 'completed', flag, used: 0, left: kept })
  const used = Math.min(kept, before.amount)
  const given = withOffer(model, index, { ...offer, status: 'completed', flag: null, used, left: kept - used })
  return give(given, offer, moment)
}

/** R94 to R104. */
function refusal(model: Model, { purpose, price, opened }: ModelOffer, paid: number): Flag | null {
  const { held, trials, choice } = model
  if (isForEver(model)) return 'already_lifetime'
  if (purpose === 'trial' && trials.includes(planOf(price))) return 'trial_already_used'
  if (!held || !isValid(model, paid)) return null
  if (purpose === 'trial') return 'superseded'
  if (planOf(price) === planOf(held.price)) return null
  if (purpose === 'extend') return choice.bought ? 'superseded' : null
  return opened >= choice.opened && paid >= choice.paid - EQUAL_SECONDS ? null : 'superseded'
}

function give(model: Model, offer: ModelOffer, paid: number): Model {
  const { held, choice, trials } = model
  const { purpose, price, opened, isByRenewalLink } = offer
  const plan = planOf(price)
  const extendsPeriod =
    isValid(model, paid) && purpose !== 'trial' && (purpose === 'extend' || planOf(held!.price) === plan)
  const days = purpose === 'trial' ? PRICES[price]!.trialDays : PRICES[price]!.days
  const until = days === null ? Infinity : (extendsPeriod ? held!.end : paid) + days * DAY
  const keepsPlan = extendsPeriod || purpose === 'extend'
  const isChoice = held !== null && !isByRenewalLink && planOf(held.price) === plan && opened >= choice.priced
  const shown = held && keepsPlan && !isChoice ? held.price : price
  const priced = !keepsPlan || isChoice ? opened : choice.priced
  // An extension is no plan choice; one that is paid after the end restarts the period, and does not set the opening time back.
  const latest = !keepsPlan
    ? { opened, paid, bought: true }
    : extendsPeriod
      ? choice
      : { opened: Math.max(opened, choice.opened), paid, bought: choice.bought }
  return {
    ...model,
    held: { price: shown, end: until },
    choice: { ...latest, priced },
    trials: purpose === 'trial' ? [...trials, plan].sort() : trials,
  }
}

function refund(model: Model, index: number): Model | null {
  const offer = model.offers[index]!
  const kept = offer.received - offer.refunded
  if (kept === 0 || (offer.flag === null && offer.isSettled)) return null
  const amount = offer.flag === 'duplicate_payment' ? offer.left : kept
  const left = offer.left - Math.min(offer.left, amount)
  const used = offer.used - Math.max(0, amount - offer.left)
  return withOffer(model, index, {
    ...offer,
    refunded: offer.refunded + amount,
    used,
    left,
    flag: left === 0 ? null : offer.flag,
    isSettled: offer.isSettled || (left === 0 && (offer.left > 0 || kept === amount)),
    status: kept === amount ? 'refunded' : offer.status,
    money: without(offer.money, amount),
  })
}

function complete(model: Model, index: number): Model | null {
  const offer = model.offers[index]!
  if (offer.flag !== 'superseded' || offer.status !== 'completed' || isForEver(model)) return null
  if (offer.purpose === 'trial' && model.trials.includes(planOf(offer.price))) return null
  const kept = offer.received - offer.refunded
  const used = Math.min(kept, offer.amount)
  const settled = { ...offer, flag: null, used, left: kept - used, isSettled: false }
  const decided = offer.purpose === 'extend' ? offer : { ...offer, opened: model.now }
  return give(withOffer(model, index, settled), decided, model.now)
}

/** R136: what paid for nothing may be moved to a payment that waits; it counts there from when it was paid. */
function move(model: Model, index: number, to: number): Model | null {
  const source = model.offers[index]!
  const newest = source.money.findLast(({ kept }) => kept > 0)
  if (!newest || model.offers[to]!.status !== 'pending') return null
  const amount = Math.min(newest.kept, source.received - source.refunded - source.used)
  if (amount === 0) return null
  const left = source.left - Math.min(source.left, amount)
  const isCleared = source.flag !== null && left === 0
  const taken = withOffer(model, index, {
    ...source,
    received: source.received - amount,
    left,
    flag: isCleared ? null : source.flag,
    isSettled: isCleared ? false : source.isSettled,
    money: without(source.money, amount),
  })
  return arrive(taken, to, amount, newest.paid)
}

/** Takes from the newest money first. */
function without(money: ModelOffer['money'], amount: number): ModelOffer['money'] {
  let rest = amount
  return money
    .toReversed()
    .map((one) => {
      const share = Math.min(rest, one.kept)
      rest -= share
      return { ...one, kept: one.kept - share }
    })
    .toReversed()
    .filter(({ kept }) => kept > 0)
}

function withOffer(model: Model, index: number, offer: ModelOffer): Model {
  return { ...model, offers: model.offers.with(index, offer) }
}
