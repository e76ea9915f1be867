import fc from 'fast-check'

/** A price of the histories, in days; null never ends. */
export interface SoldPrice {
  readonly plan: 'basic' | 'gold' | 'pro'
  readonly days: number | null
  /** Length of its paid trial; null if it has none. */
  readonly trialDays: number | null
}

export const PRICES: readonly SoldPrice[] = [
  { plan: 'basic', days: 7, trialDays: null },
  { plan: 'basic', days: 30, trialDays: null },
  { plan: 'gold', days: 365, trialDays: null },
  { plan: 'pro', days: 30, trialDays: 5 },
  { plan: 'pro', days: 90, trialDays: 10 },
  { plan: 'gold', days: null, trialDays: null },
]

/** A promotion of the histories. What it leaves of a price can be halved often. */
export interface SoldPromotion {
  readonly code: string
  /** What it takes off: a share, or an amount. */
  readonly percent?: number
  readonly amount?: number
  readonly everyPeriod: boolean
  /** Whether an end user may use it once. */
  readonly once: boolean
  /** The one plan that it is for; null for all. */
  readonly plan: SoldPrice['plan'] | null
}

export const PROMOTIONS: readonly SoldPromotion[] = [
  { code: 'ONCE', percent: 36, everyPeriod: false, once: true, plan: null },
  { code: 'EVERY', percent: 68, everyPeriod: true, once: false, plan: null },
  { code: 'GOLD', amount: 36_000, everyPeriod: true, once: false, plan: 'gold' },
]

/** One event in the history of an end user. `offer` and `price` are indexes modulo the number of offers and prices. */
export type Step =
  | { readonly kind: 'pass'; readonly seconds: number }
  | {
      readonly kind: 'checkout'
      readonly price: number
      readonly skipsTrial: boolean
      /** An index of `PROMOTIONS`; absent without a code. */
      readonly promotion?: number | undefined
    }
  | { readonly kind: 'renew' | 'end' }
  /** Money for an offer is reported now and was paid `late` seconds ago. Reported again, it is a duplicate. */
  | { readonly kind: 'pay'; readonly offer: number; readonly late: number }
  | { readonly kind: 'switch'; readonly price: number }
  /** An operator completes a payment that was superseded. */
  | { readonly kind: 'complete'; readonly offer: number }
  /** An operator refunds half of what is kept, or what a refund without an amount covers. */
  | { readonly kind: 'refund'; readonly offer: number; readonly isHalf: boolean }

const DAY = 86_400
const price = fc.nat(PRICES.length - 2)
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('pass' as const),
      seconds: fc.constantFrom(1, 30, 59, 61, 600, 3000, 7200, DAY, 6 * DAY, 25 * DAY),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('checkout' as const),
      // Rare, since little can happen after a lifetime purchase.
      price: fc.oneof({ weight: 12, arbitrary: price }, { weight: 1, arbitrary: fc.constant(PRICES.length - 1) }),
      skipsTrial: fc.boolean(),
      promotion: fc.option(fc.nat(PROMOTIONS.length - 1), { nil: undefined }),
    }),
  },
  { weight: 2, arbitrary: fc.constant<Step>({ kind: 'renew' }) },
  {
    weight: 9,
    arbitrary: fc.record({
      kind: fc.constant('pay' as const),
      offer: fc.nat(20),
      late: fc.constantFrom(0, 0, 0, 30, 60, 61, 900, DAY),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('switch' as const), price }) },
  { weight: 1, arbitrary: fc.constant<Step>({ kind: 'end' }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('complete' as const), offer: fc.nat(20) }) },
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constant('refund' as const), offer: fc.nat(20), isHalf: fc.boolean() }),
  },
)

/**
 * A payment for another plan (offer 2) that was opened before a plan switch, and comes after an extension (offer 1) that was opened
 * before the switch, too, and paid after the end. Random steps come to this only once in a thousand histories.
 */
const LATE_EXTENSION: readonly Step[] = [
  { kind: 'checkout', price: 0, skipsTrial: false },
  { kind: 'pay', offer: 0, late: 0 },
  { kind: 'checkout', price: 1, skipsTrial: false },
  { kind: 'pass', seconds: 600 },
  { kind: 'checkout', price: 2, skipsTrial: false },
  { kind: 'pass', seconds: 600 },
  { kind: 'switch', price: 4 },
  { kind: 'pass', seconds: 25 * DAY },
  { kind: 'pay', offer: 1, late: 0 },
  { kind: 'pass', seconds: DAY },
  { kind: 'pay', offer: 2, late: 0 },
]

/** Possible histories of one end user, from the first checkout on. */
export function histories(longest: number): fc.Arbitrary<Step[]> {
  const steps = fc.array(step, { minLength: longest / 2, maxLength: longest, size: 'max' })
  const afterLateExtension = fc
    .tuple(fc.subarray([...LATE_EXTENSION], { minLength: LATE_EXTENSION.length - 2 }), steps)
    .map(([first, rest]) => [...first, ...rest].slice(0, longest))
  return fc.oneof({ weight: 5, arbitrary: steps }, { weight: 1, arbitrary: afterLateExtension })
}
