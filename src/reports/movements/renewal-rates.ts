/** Subscriptions that began in a month and were renewed so often. */
export interface Cohort {
  readonly month: string
  readonly renewals: number
  readonly subscriptions: number
}

/** How many of the subscriptions that began in a month were renewed (R423). */
export interface RenewalRate {
  readonly start_month: string
  /** How many began. */
  readonly size: number
  /** The share of them, from 0 to 1, that was renewed at least once, twice and so on, up to the most renewals of any. */
  readonly rates: readonly number[]
}

/** The rates of each month in which a subscription began, the oldest first. A rate never exceeds the one before it. */
export function renewalRates(cohorts: readonly Cohort[]): RenewalRate[] {
  const months = [...Map.groupBy(cohorts, ({ month }) => month)].sort(([a], [b]) => (a < b ? -1 : 1))
  return months.map(([start_month, parts]) => {
    const size = count(parts)
    const most = Math.max(...parts.map(({ renewals }) => renewals))
    const rates = Array.from({ length: most }, (_, index) =>
      fraction(count(parts.filter(({ renewals }) => renewals > index)), size),
    )
    return { start_month, size, rates }
  })
}

function count(parts: readonly Cohort[]): number {
  return parts.reduce((sum, { subscriptions }) => sum + subscriptions, 0)
}

/** To four decimals. */
export function fraction(part: number, whole: number): number {
  return Math.round((part / whole) * 10_000) / 10_000
}
