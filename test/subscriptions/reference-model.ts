import { PRICES, PROMOTIONS, type SoldPrice, type SoldPromotion } from './histories.ts'

const DAY = 86_400

/** An opened payment. Times in seconds. */
export interface Offer {
  readonly purpose: 'start' | 'extend' | 'change' | 'trial'
  readonly isByRenewalLink: boolean
  readonly price: SoldPrice
  readonly opened: number
  readonly expires: number
  /** The end of the period that it was opened to renew; null if there was none. */
  readonly renews: number | null
  /** The promotion whose discount it has. */
  readonly promotion: SoldPromotion | null
  /** Whether a use of the promotion is reserved or counted for it. */
  hasUse: boolean
  state: 'open' | 'paid' | 'refunded'
  flag: Flag | null
  /** Money that was applied, and money that is unapplied or surplus, as shares of the price: 1 is all of it. */
  used: number
  left: number
  /** Whether the last refund returned everything that a refund without an amount covers. */
  isRefunded: boolean
}

export type Flag = 'already_lifetime' | 'trial_already_used' | 'superseded' | 'duplicate_payment'

/** The subscription of the end user: the price shown, and the end in seconds; `Infinity` for lifetime. */
export interface Held {
  readonly price: SoldPrice
  readonly end: number
}

/**
 * Rules R94 to R106 about the effect of a payment, and R352 to R357 about discounts, for one end user, as literally as possible.
 * It shares no code with the service, and prices of whole days keep calendars out of it.
 */
export class ReferenceModel {
  readonly offers: Offer[] = []
  held: Held | null = null
  #now: number
  /** The latest plan choice (R101): when it was opened and paid, and whether it bought the plan. */
  #decision = { opened: -Infinity, paid: -Infinity, bought: false }
  /** When the present price was chosen. */
  #priceChosen = -Infinity
  readonly #trials = new Set<string>()
  /** Ends of periods that a payment has moved. */
  readonly #renewedEnds = new Set<number>()
  #renewals = 0
  /** The promotion whose discount renewals get (R357). */
  #lasting: SoldPromotion | null = null
  readonly #usedPromotions = new Set<SoldPromotion>()

  constructor(now: number) {
    this.#now = now
  }

  get now(): number {
    return this.#now
  }

  /** The number of `subscription.renewed` events. */
  get renewals(): number {
    return this.#renewals
  }

  get lasting(): SoldPromotion | null {
    return this.#lasting
  }

  pass(seconds: number): void {
    this.#now += seconds
  }

  isValid(at: number): this is { held: Held } {
    return this.held !== null && at < this.held.end
  }

  get isLifetime(): boolean {
    return this.held?.end === Infinity
  }

  /** Null if the checkout is refused. */
  checkout(index: number, skipsTrial: boolean, promotionIndex?: number): Offer | null {
    const price = PRICES[index]!
    const promotion = promotionIndex === undefined ? null : PROMOTIONS[promotionIndex]!
    if (this.isLifetime) return null
    if (promotion && !this.#isUsable(promotion, price)) return null
    const valid = this.isValid(this.#now)
    const grantsTrial = price.trialDays !== null && !skipsTrial && !valid && !this.#trials.has(price.plan)
    const samePlan = this.held?.price.plan === price.plan
    const purpose = grantsTrial ? 'trial' : !valid ? 'start' : samePlan ? 'extend' : 'change'
    // The reservation of an older checkout with the same code passes to this one.
    for (const offer of this.offers)
      if (offer.state === 'open' && offer.promotion === promotion && !offer.isByRenewalLink) offer.hasUse = false
    return this.#open(purpose, price, false, promotion)
  }

  #isUsable(promotion: SoldPromotion, { plan }: SoldPrice): boolean {
    if (promotion.once && this.#usedPromotions.has(promotion)) return false
    return promotion.plan === null || promotion.plan === plan
  }

  /** What the offer costs, and what its promotion takes off that. */
  amountOf({ purpose, promotion }: Offer): { amount: number; discount: number } {
    const regular = purpose === 'trial' ? 10_000 : 100_000
    const discount = promotion ? (promotion.amount ?? Math.floor((regular * promotion.percent!) / 100)) : 0
    return { amount: regular - discount, discount }
  }

  /** Whether a newer checkout has the use of its promotion. */
  hasLostPromotion({ promotion, isByRenewalLink, hasUse }: Offer): boolean {
    return promotion !== null && !isByRenewalLink && !hasUse
  }

  /** The offer behind the renewal link; null if there is nothing to renew. */
  renew(): Offer | null {
    if (!this.held || this.isLifetime) return null
    const { price } = this.held
    const latest = this.offers.filter(({ isByRenewalLink }) => isByRenewalLink).at(-1)
    const isSame = latest?.price === price && latest.promotion === this.#lasting
    if (isSame && latest.state === 'open' && this.#now < latest.expires) return latest
    return this.#open('extend', price, true, this.#lasting)
  }

  switch(index: number): boolean {
    if (!this.held || this.isLifetime) return false
    const price = PRICES[index]!
    const isPlanKept = price.plan === this.held.price.plan
    if (!isPlanKept) this.#lasting = null
    this.held = { ...this.held, price }
    this.#decide(this.#now, this.#now, isPlanKept && this.#decision.bought)
    this.#priceChosen = this.#now
    return true
  }

  end(): boolean {
    if (!this.isValid(this.#now)) return false
    this.held = { ...this.held, end: this.#now }
    this.#decide(this.#now, this.#now, this.#decision.bought)
    return true
  }

  /** Money for the offer is reported now and was paid `late` seconds ago. */
  pay(offer: Offer, late: number): void {
    if (offer.state !== 'open') {
      offer.flag ??= 'duplicate_payment'
      offer.left += 1
      return
    }
    const paid = Math.max(offer.opened, this.#now - late)
    offer.state = 'paid'
    if (offer.promotion && !offer.isByRenewalLink) {
      offer.hasUse = true
      this.#usedPromotions.add(offer.promotion)
    }
    offer.flag = this.refusal(offer, paid)
    if (offer.flag === null) {
      offer.used = 1
      this.#apply(offer, paid)
    } else {
      offer.left = 1
    }
  }

  /** The refunded share of the price; null if no refund is possible. The period does not change. */
  refund(offer: Offer, isHalf: boolean): number | null {
    const kept = offer.used + offer.left
    if (kept === 0) return null
    if (!isHalf && offer.flag === null && offer.isRefunded) return null
    const amount = isHalf ? kept / 2 : offer.flag === 'duplicate_payment' ? offer.left : kept
    const hadLeft = offer.left > 0
    const fromLeft = Math.min(offer.left, amount)
    offer.left -= fromLeft
    offer.used -= amount - fromLeft
    if (offer.left === 0) offer.flag = null
    if (offer.left === 0 && (hadLeft || offer.used === 0)) offer.isRefunded = true
    if (offer.used + offer.left === 0) offer.state = 'refunded'
    return amount
  }

  /** Applies it if an operator may do so now, and returns whether. */
  complete(offer: Offer): boolean {
    if (offer.flag !== 'superseded') return false
    if (this.isLifetime || (offer.purpose === 'trial' && this.#trials.has(offer.price.plan))) return false
    const kept = offer.used + offer.left
    offer.used = Math.min(kept, 1)
    offer.left = kept - offer.used
    offer.isRefunded = false
    offer.flag = null
    this.#apply(offer.purpose === 'extend' ? offer : { ...offer, opened: this.#now }, this.#now)
    return true
  }

  /** Why the offer would not be applied if it were paid at `paid`. */
  refusal(offer: Offer, paid: number): Flag | null {
    if (this.isLifetime) return 'already_lifetime'
    if (offer.purpose === 'trial' && this.#trials.has(offer.price.plan)) return 'trial_already_used'
    if (!this.isValid(paid)) return null
    if (offer.purpose === 'trial') return 'superseded'
    if (offer.price.plan === this.held.price.plan) return null
    if (offer.purpose === 'extend') return this.#decision.bought ? 'superseded' : null
    const inOrder = offer.opened >= this.#decision.opened && paid >= this.#decision.paid - 60
    return inOrder ? null : 'superseded'
  }

  /** The end if the offer were paid and applied now. */
  endIfPaidNow(offer: Offer): number {
    return this.#endAfter(offer, this.#now)
  }

  #open(purpose: Offer['purpose'], price: SoldPrice, isByRenewalLink: boolean, promotion: SoldPromotion | null): Offer {
    const opened = this.#now
    const terms = {
      purpose,
      isByRenewalLink,
      price,
      opened,
      expires: opened + 3600,
      renews: this.held?.end ?? null,
      promotion,
    }
    const offer: Offer = {
      ...terms,
      hasUse: !isByRenewalLink,
      state: 'open',
      flag: null,
      used: 0,
      left: 0,
      isRefunded: false,
    }
    this.offers.push(offer)
    return offer
  }

  #endAfter(offer: Offer, paid: number): number {
    const days = offer.purpose === 'trial' ? offer.price.trialDays : offer.price.days
    if (days === null) return Infinity
    return (this.#extends(offer, paid) ? this.held!.end : paid) + days * DAY
  }

  #extends(offer: Offer, paid: number): boolean {
    if (!this.isValid(paid) || offer.purpose === 'trial') return false
    return offer.purpose === 'extend' || offer.price.plan === this.held.price.plan
  }

  #apply(offer: Offer, paid: number): void {
    const end = this.#endAfter(offer, paid)
    this.#announce(offer, end)
    const isExtension = this.#extends(offer, paid)
    const keeps = isExtension || offer.purpose === 'extend'
    const plan = this.held?.price.plan
    const isChoice =
      !offer.isByRenewalLink && offer.price.plan === this.held?.price.plan && offer.opened >= this.#priceChosen
    if (!keeps || isChoice) {
      this.held = { price: offer.price, end }
      this.#priceChosen = offer.opened
    } else {
      this.held = { price: this.held!.price, end }
    }
    if (offer.promotion?.everyPeriod && !offer.isByRenewalLink && offer.price.plan === this.held.price.plan)
      this.#lasting = offer.promotion
    else if (!keeps || plan !== this.held.price.plan) this.#lasting = null
    if (offer.purpose === 'trial') this.#trials.add(offer.price.plan)
    if (!keeps) this.#decide(offer.opened, paid, true)
    // An extension that is paid after the end does not set the opening time of L back.
    else if (!isExtension) this.#decide(Math.max(offer.opened, this.#decision.opened), paid, this.#decision.bought)
  }

  /** R106: every payment of an existing subscription renews it, unless another one has renewed the same period, which is over since. */
  #announce({ renews }: Offer, end: number): void {
    if (!this.held) return
    const before = this.held.end
    if (renews === null || renews === before || !this.#renewedEnds.has(renews)) this.#renewals += 1
    if (end !== before) this.#renewedEnds.add(before)
  }

  #decide(opened: number, paid: number, bought: boolean): void {
    this.#decision = { opened, paid, bought }
  }
}
