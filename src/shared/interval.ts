export const TRIAL_UNITS = ['day', 'week', 'month', 'year'] as const
export const INTERVAL_UNITS = [...TRIAL_UNITS, 'lifetime'] as const

/** Units of a price's interval; `lifetime` never ends. */
export type IntervalUnit = (typeof INTERVAL_UNITS)[number]
export type TrialUnit = (typeof TRIAL_UNITS)[number]

/** A period's length: `count` times `unit`. */
export interface Interval {
  readonly unit: IntervalUnit
  readonly count: number
}

/** The largest count of each unit: a hundred years. A longer period is a typing error. */
export const MAX_COUNT: Readonly<Record<TrialUnit, number>> = { day: 36_500, week: 5_200, month: 1_200, year: 100 }
