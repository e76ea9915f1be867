import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { asAppTime, type AppTime } from '#shared/time.ts'
import {
  decide,
  decisionAfter,
  dependsOnDecision,
  effectiveStatus,
  isLifetime,
  purposeOf,
  type DecidingLine,
  type Decision,
  type PaymentEffect,
  type Quote,
  type SubscriptionState,
} from '#subscriptions/lifecycle.ts'
import { histories, PRICES, type Step } from './histories.ts'
import { ReferenceModel, type Offer } from './reference-model.ts'

const RUNS = 3000
const SEED = 1107
const START = Date.UTC(2026, 2, 1, 10) / 1000

const at = (seconds: number): AppTime => asAppTime(new Date(seconds * 1000))
const PLANS = ['basic', 'gold', 'pro'] as const
const planIdOf = (offer: { readonly plan: string }): number => PLANS.findIndex((plan) => plan === offer.plan)

/** A subscription that lives by `decide` alone, side by side with the model. */
class Ledger {
  readonly model = new ReferenceModel(START)
  readonly #quotes = new Map<Offer, Quote>()
  readonly #trials = new Set<number>()
  #state: SubscriptionState | null = null
  #last: Decision | null = null

  take(step: Step): void {
    const { model } = this
    switch (step.kind) {
      case 'pass':
        model.pass(step.seconds)
        break
      case 'checkout':
        this.#quote(model.checkout(step.price, step.skipsTrial))
        break
      case 'renew':
        this.#quote(model.renew())
        break
      case 'switch':
        if (model.switch(step.price)) this.#write('switched', { ...this.#state!, ...idsOf(step.price) })
        break
      case 'end':
        if (model.end()) this.#write('ended', { ...this.#state!, currentPeriodEnd: at(model.now) })
        break
      case 'pay': {
        const offer = pick(model.offers, step.offer)
        if (offer?.state !== 'open') break
        model.pay(offer, step.late)
        this.#pay(offer, Math.max(offer.opened, model.now - step.late), this.#quoteOf(offer))
        break
      }
      case 'complete': {
        const offer = pick(model.offers, step.offer)
        if (!offer || !model.complete(offer)) break
        const quote = this.#quoteOf(offer)
        const openedAt = quote.purpose === 'extend' ? quote.openedAt : at(model.now)
        this.#pay(offer, model.now, { ...quote, openedAt, isAccepted: true })
        break
      }
      case 'refund': {
        // A refund leaves the period as it is.
        const offer = pick(model.offers, step.offer)
        if (offer) model.refund(offer, step.isHalf)
      }
    }
    expect(this.#held(), JSON.stringify(step)).to.deep.equal(
      model.held && [PRICES.indexOf(model.held.price), model.held.end],
    )
  }

  #quote(offer: Offer | null): void {
    if (!offer || this.#quotes.has(offer)) return
    const [planId, priceId] = [planIdOf(offer.price), PRICES.indexOf(offer.price)]
    const isTrial = offer.purpose === 'trial'
    const purpose = offer.isRenewal ? 'extend' : purposeOf(this.#state, planId, isTrial, at(offer.opened))
    expect(purpose).to.equal(offer.purpose)
    const days = isTrial ? offer.price.trialDays : offer.price.days
    const interval = days === null ? ({ unit: 'lifetime', count: 1 } as const) : ({ unit: 'day', count: days } as const)
    const { isRenewal } = offer
    const openedAt = at(offer.opened)
    const rest = { isTrialUsed: false, isAccepted: false }
    this.#quotes.set(offer, { purpose, isRenewal, planId, priceId, interval, openedAt, ...rest })
  }

  #quoteOf(offer: Offer): Quote {
    const quote = this.#quotes.get(offer)!
    return { ...quote, isTrialUsed: this.#trials.has(quote.planId) }
  }

  #pay(offer: Offer, paid: number, quote: Quote): void {
    const before = this.#state
    const effect = decide(before, this.#last, quote, at(paid))
    if (!dependsOnDecision(before, quote)) expect(decide(before, null, quote, at(paid))).to.deep.equal(effect)
    expect(effect.kind === 'refused' ? effect.reason : null).to.equal(offer.flag)
    if (effect.kind === 'refused') return
    this.#keepsPaidTime(before, quote, effect, paid)
    if (effect.isTrial) this.#trials.add(quote.planId)
    const { start: periodStart, end: currentPeriodEnd, anchorDay } = effect.period
    const { planId, priceId } = effect
    const state = { planId, priceId, periodStart, currentPeriodEnd, anchorDay }
    this.#write(effect.kind, state, { quote, appliedAt: at(paid) })
  }

  /** The promise itself, whatever the model says: an end moves back only by a purchase of another plan, or by an operator. */
  #keepsPaidTime(
    before: SubscriptionState | null,
    quote: Quote,
    effect: Exclude<PaymentEffect, { kind: 'refused' }>,
    paid: number,
  ): void {
    if (!before || isLifetime(before) || effectiveStatus(before, at(paid)) === 'expired') return
    const isShorter = effect.period.end !== null && effect.period.end < before.currentPeriodEnd!
    if (!isShorter || quote.isAccepted) return
    expect(quote.planId).to.not.equal(before.planId)
    expect(quote.openedAt >= this.#last!.openedAt).to.equal(true)
  }

  #write(
    kind: DecidingLine['kind'],
    state: SubscriptionState,
    payment?: { readonly quote: Quote; readonly appliedAt: AppTime },
  ): void {
    const now = at(this.model.now)
    this.#last = decisionAfter(this.#last, {
      kind,
      purpose: payment?.quote.purpose ?? null,
      isRenewal: payment?.quote.isRenewal ?? false,
      planId: state.planId,
      soldPlanId: payment?.quote.planId ?? state.planId,
      openedAt: payment?.quote.openedAt ?? now,
      appliedAt: payment?.appliedAt ?? now,
    })
    this.#state = state
  }

  #held(): [number, number] | null {
    if (!this.#state) return null
    const { priceId, currentPeriodEnd: end } = this.#state
    return [priceId, end === null ? Infinity : end.getTime() / 1000]
  }
}

function idsOf(index: number): { planId: number; priceId: number } {
  return { planId: planIdOf(PRICES[index]!), priceId: index }
}

function pick<T>(list: readonly T[], index: number): T | undefined {
  return list[index % Math.max(1, list.length)]
}

describe('what payments do, whatever happens between them (contract 7)', () => {
  it(`agrees with a model written from the contract, over ${RUNS} random histories, and takes no paid time away`, function () {
    this.timeout(60_000)
    fc.assert(
      fc.property(histories(30), (steps) => {
        const ledger = new Ledger()
        for (const step of steps) ledger.take(step)
      }),
      { numRuns: RUNS, seed: SEED },
    )
  })
})
