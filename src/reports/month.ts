import { BoundedMap } from '#shared/bounded-map.ts'
import { addMs, asRealTime, HOUR_MS, type RealTime } from '#shared/time.ts'

/** A month of a zone: from its first instant up to, and without, that of the next month. */
export interface MonthRange {
  /** `2026-10` */
  readonly month: string
  readonly from: RealTime
  readonly until: RealTime
}

/** The month after the last one that can be reported would have five digits in its year. */
const LAST_MONTH = '9999-12'

/** Whether the text is a month such as `2026-10`. */
export function isMonth(text: string): boolean {
  return /^[1-9]\d{3}-(0[1-9]|1[0-2])$/.test(text) && text < LAST_MONTH
}

/** The month of an instant in a time zone. */
export function monthOf(instant: Date, zone: string): string {
  return localTimestamp(instant, zone).slice(0, 7)
}

/** The month that is `count` months after another, or before it where `count` is negative. */
export function monthAfter(month: string, count: number): string {
  const [year = 0, number = 0] = month.split('-').map(Number)
  const months = year * 12 + number - 1 + count
  return `${String(Math.floor(months / 12)).padStart(4, '0')}-${String((months % 12) + 1).padStart(2, '0')}`
}

/** The instants between which a month lies in a time zone. */
export function rangeOf(month: string, zone: string): MonthRange {
  return { month, from: firstInstant(month, zone), until: firstInstant(monthAfter(month, 1), zone) }
}

/** `2026-10-31 23:59:59`: the time that clocks in the zone show. */
export function localTimestamp(instant: Date, zone: string): string {
  return formatFor(zone).format(instant)
}

// Kept, since creating a format takes longer than formatting a thousand times.
const MAX_FORMATS = 100
const formats = new BoundedMap<string, Intl.DateTimeFormat>(MAX_FORMATS)

function formatFor(zone: string): Intl.DateTimeFormat {
  // Swedish writes times as ISO 8601 does.
  return formats.getOrCreate(
    zone,
    () => new Intl.DateTimeFormat('sv-SE', { timeZone: zone, dateStyle: 'short', timeStyle: 'medium' }),
  )
}

/** Zones change their offsets by quarters of an hour, and none is more than 14 hours from UTC. */
const STEP_MS = HOUR_MS / 4
const MAX_STEPS = (28 * HOUR_MS) / STEP_MS

/** By bisection. Where clocks go back over midnight of the first day, the month begins at one of the two midnights. */
function firstInstant(month: string, zone: string): RealTime {
  const earliest = addMs(asRealTime(new Date(`${month}-01T00:00:00Z`)), -14 * HOUR_MS)
  let [before, reached] = [-1, MAX_STEPS]
  while (reached - before > 1) {
    const middle = Math.floor((before + reached) / 2)
    if (monthOf(addMs(earliest, middle * STEP_MS), zone) < month) before = middle
    else reached = middle
  }
  return addMs(earliest, reached * STEP_MS)
}
