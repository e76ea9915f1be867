const DAY = 86_400

/** A price on sale, in whole days, which keep calendars out of it. */
export interface SoldPrice {
  readonly plan: number
  /** Null never ends. */
  readonly days: number | null
  /** Length of its paid trial; null if it has none. */
  readonly trialDays: number | null
}

export const PRICES: readonly SoldPrice[] = [
  { plan: 0, days: 30, trialDays: null },
  { plan: 0, days: 90, trialDays: null },
  { plan: 1, days: 365, trialDays: null },
  { plan: 2, days: 30, trialDays: 5 },
  { plan: 1, days: null, trialDays: null },
]
/** Odd, so that halves and percentages have to be rounded. */
export const AMOUNT = 99_999
export const TRIAL_AMOUNT = 10_001
/** For the first payment alone. */
export const PROMOTION = { code: 'SPRING', percent: 33, amount: null, currency: null }
export const CHECKOUT_SECONDS = 3600
/** How far the clock goes at once: within a checkout, within a period, and over its end. */
export const PASSES = [60, 10 * DAY, 40 * DAY] as const

/** One event in the history of an end user. `offer` and `to` are indexes of the payments that were opened. */
export type Action =
  | { readonly kind: 'open'; readonly price: number; readonly isDiscounted: boolean }
  | { readonly kind: 'renew' | 'end' }
  | { readonly kind: 'switch'; readonly price: number }
  | { readonly kind: 'pass'; readonly seconds: number }
  /** Money is reported now. `late`: it was paid when the payment was opened. `part`: half of what is due. */
  | { readonly kind: 'pay'; readonly offer: number; readonly how: 'now' | 'late' | 'part' }
  /** A refund without an amount; completing what was superseded. */
  | { readonly kind: 'refund' | 'complete'; readonly offer: number }
  /** What the newest money of one payment has not paid for goes to another that waits. */
  | { readonly kind: 'move'; readonly offer: number; readonly to: number }

export const KINDS = [
  'open',
  'renew',
  'end',
  'switch',
  'pass',
  'pay',
  'refund',
  'complete',
  'move',
] as const satisfies readonly Action['kind'][]

/** Everything that can happen next, where `offers` payments were opened. */
export function actionsWith(offers: number): Action[] {
  const each = Array.from({ length: offers }, (_, offer) => offer)
  return [
    ...PRICES.map((_, price): Action => ({ kind: 'open', price, isDiscounted: false })),
    { kind: 'open', price: 0, isDiscounted: true },
    { kind: 'renew' },
    { kind: 'end' },
    { kind: 'switch', price: 2 },
    { kind: 'switch', price: 0 },
    ...PASSES.map((seconds): Action => ({ kind: 'pass', seconds })),
    ...each.flatMap((offer): Action[] => [
      ...(['now', 'late', 'part'] as const).map((how): Action => ({ kind: 'pay', offer, how })),
      { kind: 'refund', offer },
      { kind: 'complete', offer },
      ...each.filter((to) => to !== offer).map((to): Action => ({ kind: 'move', offer, to })),
    ]),
  ]
}

export type Flag = 'underpaid' | 'duplicate_payment' | 'already_lifetime' | 'trial_already_used' | 'superseded'

/** What both sides show of one payment. Amounts in the smallest unit. */
export interface ShownOffer {
  readonly purpose: 'start' | 'extend' | 'change' | 'trial'
  readonly status: 'pending' | 'completed' | 'refunded'
  readonly flag: string | null
  readonly amount: number
  readonly received: number
  readonly refunded: number
  readonly used: number
  readonly left: number
}

/** What both sides show of an end user. `end` in seconds; `Infinity` for lifetime. */
export interface Shown {
  readonly price: number | null
  readonly end: number | null
  readonly offers: readonly ShownOffer[]
}
