import type { Interval } from '#shared/interval.ts'
import { DAY_MS, addMs, type AppTime } from '#shared/time.ts'

/** A span of access. `end` null never ends. Instants are UTC, in whole seconds. */
export interface Period {
  readonly start: AppTime
  readonly end: AppTime | null
  /** Day of the month that the next month or year step aims at; null for lifetime. */
  readonly anchorDay: number | null
}

const LAST_YEAR = 9999

/**
 * The period of one interval from `start` (R111). Month and year steps aim at the anchor day and stop at
 * the month's last: 31 Jan, 28 Feb, 31 Mar. `anchorDay` null starts a new run of steps; day and week steps end a run, so that the
 * day they reach anchors the month step after them.
 */
export function periodFrom(start: AppTime, interval: Interval, anchorDay: number | null): Period {
  switch (interval.unit) {
    case 'lifetime':
      return { start, end: null, anchorDay: null }
    case 'day':
      return byDays(start, interval.count)
    case 'week':
      return byDays(start, interval.count * 7)
    case 'month':
      return byMonths(start, interval.count, anchorDay ?? start.getUTCDate())
    case 'year':
      return byMonths(start, interval.count * 12, anchorDay ?? start.getUTCDate())
  }
}

function byDays(start: AppTime, days: number): Period {
  const end = addMs(start, days * DAY_MS)
  return { start, end, anchorDay: end.getUTCDate() }
}

function byMonths(start: AppTime, months: number, anchorDay: number): Period {
  const year = start.getUTCFullYear()
  const month = start.getUTCMonth() + months
  const end = addMs(start, 0)
  end.setUTCFullYear(year, month, 1)
  end.setUTCDate(Math.min(anchorDay, lastDayOfMonth(end)))
  return { start, end, anchorDay }
}

/** The last day of the month that the instant is in, in UTC. */
export function lastDayOfMonth(instant: AppTime): number {
  return new Date(Date.UTC(instant.getUTCFullYear(), instant.getUTCMonth() + 1, 0)).getUTCDate()
}

/**
 * The period guard (R112). An extension ends later than the old end, a period lasts at least 28 days per month sold, and its end is a date
 * that can be written. `extendedEnd` is the end that the period continues from, null if it does not continue a period.
 */
export function isValidPeriod(period: Period, interval: Interval, extendedEnd: AppTime | null): boolean {
  if (period.end === null) return interval.unit === 'lifetime'
  const endMs = period.end.getTime()
  if (Number.isNaN(endMs) || period.end.getUTCFullYear() > LAST_YEAR) return false
  if (extendedEnd && endMs <= extendedEnd.getTime()) return false
  return endMs - period.start.getTime() >= leastDays(interval) * DAY_MS
}

function leastDays({ unit, count }: Interval): number {
  switch (unit) {
    case 'lifetime':
      return Infinity
    case 'day':
      return count
    case 'week':
      return count * 7
    case 'month':
      return count * 28
    case 'year':
      return count * 12 * 28
  }
}
