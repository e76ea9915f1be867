declare const kind: unique symbol

/** An instant of real time: signatures, leases, deliveries and providers use it. */
export type RealTime = Date & { readonly [kind]: 'real' }
/** An instant of an app's own time, which a sandbox app's test clock moves. Comparing it with real time does not compile. */
export type AppTime = Date & { readonly [kind]: 'app' }

/** The source of the present instant everywhere, so that tests can move it. */
export interface Clock {
  now(): RealTime
  /** Stands in for the database's clock; set only by tests that move the time. See `databaseNow`. */
  readonly database?: Pick<Clock, 'now'>
}

export const systemClock: Clock = { now: () => asRealTime(new Date()) }

/** Marks an instant from outside, such as a provider's, as real time. */
export function asRealTime(instant: Date): RealTime {
  return instant as RealTime
}

/** Marks an instant from outside, such as an operator's, as an app's own time. */
export function asAppTime(instant: Date): AppTime {
  return instant as AppTime
}

export const SECOND_MS = 1000
export const MINUTE_MS = 60 * SECOND_MS
export const HOUR_MS = 60 * MINUTE_MS
export const DAY_MS = 24 * HOUR_MS

export function addMs<T extends Date>(instant: T, ms: number): T {
  return new Date(instant.getTime() + ms) as T
}

/** The pause after a failure that followed `earlier` others: `firstMs`, doubled with each of them, and at most `maxMs`. */
export function doublingPauseMs(firstMs: number, earlier: number, maxMs: number): number {
  return Math.min(firstMs * 2 ** earlier, maxMs)
}

/** What ends this much later than it should shows that the process stood still: it was paused, swapped out, or its event loop was blocked. */
export const STOOD_STILL_MS = 500

/**
 * Calls `end` after `ms` milliseconds; returns what cancels it. After a time in which the process stood still, it waits for a second more,
 * or for `ms` if that is shorter: the event loop may run timers before it reads what has arrived in the meantime.
 */
export function startDeadline(ms: number, end: () => void): () => void {
  const dueMs = performance.now() + ms
  let timer = setTimeout(() => {
    if (performance.now() - dueMs < STOOD_STILL_MS) end()
    else timer = setTimeout(end, Math.min(ms, SECOND_MS))
  }, ms)
  return () => clearTimeout(timer)
}

/** The instant without milliseconds. Periods are whole seconds, so that the end that is shown is the end that counts. */
export function wholeSeconds<T extends Date>(instant: T): T {
  return new Date(Math.floor(instant.getTime() / SECOND_MS) * SECOND_MS) as T
}

/** The seconds from `since` to `now`; 0 if a clock was set back. */
export function secondsSince(since: Date, now: Date): number {
  return Math.max(0, (now.getTime() - since.getTime()) / SECOND_MS)
}

export function unixSeconds(instant: Date): number {
  return Math.floor(instant.getTime() / SECOND_MS)
}

export function fromUnixSeconds(seconds: number): RealTime {
  return asRealTime(new Date(seconds * SECOND_MS))
}

/** `YYYY-MM-DD HH:MM:SS` in UTC: the form of every time in API bodies (R28). */
export function formatTimestamp(instant: Date): string {
  return instant.toISOString().slice(0, 19).replace('T', ' ')
}

export function formatTimestampOrNull(instant: Date | null): string | null {
  return instant && formatTimestamp(instant)
}

/** `YYYY-MM-DD HH:MM:SS UTC`: in sentences, which have no heading that names the zone. */
export function formatUtc(instant: Date): string {
  return `${formatTimestamp(instant)} UTC`
}

/** `YYYY-MM-DD` of the UTC day. */
export function formatDay(instant: Date): string {
  return instant.toISOString().slice(0, 10)
}

/** ISO 8601 with an offset, `2026-07-01T00:00:00+00:00`: envelope times and `sent_at` (R28). */
export function formatIsoOffset(instant: Date): string {
  return `${instant.toISOString().slice(0, 19)}+00:00`
}

/** Reads `YYYY-MM-DD HH:MM:SS` as UTC; null if it is no such time (month 13, 30 February), or before the year 1000, which no column holds. */
export function parseTimestamp(text: string): Date | null {
  if (!/^[1-9]\d{3}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}$/.test(text)) return null
  const instant = new Date(`${text.replace(' ', 'T')}Z`)
  return !Number.isNaN(instant.getTime()) && formatTimestamp(instant) === text ? instant : null
}

/** The beginning of a UTC day, `2026-10-28` or, day first, `28/10/2026`; null if it is no such day. */
export function parseDay(text: string): Date | null {
  const [, day = '', month = '', year = ''] = /^(\d{1,2})[/.-](\d{1,2})[/.-](\d{4})$/.exec(text) ?? []
  const iso = year === '' ? text : `${year}-${month.padStart(2, '0')}-${day.padStart(2, '0')}`
  return parseTimestamp(`${iso} 00:00:00`)
}

/** `parseTimestamp` of a time that an operator or a caller gives in an app's own time. */
export function parseAppTime(text: string): AppTime | null {
  const instant = parseTimestamp(text)
  return instant && asAppTime(instant)
}

/** Whether dates can be written in the zone: an IANA name, or an offset such as `+07:00`. */
export function isTimeZone(zone: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: zone })
    return true
  } catch {
    return false
  }
}

/** `10m`, `36h`, `30d`, `2w` in milliseconds; null if it is no such duration. */
export function parseDuration(text: string): number | null {
  const match = /^(\d{1,6})([smhdw])$/.exec(text)
  if (!match) return null
  const unitMs = { s: SECOND_MS, m: MINUTE_MS, h: HOUR_MS, d: DAY_MS, w: 7 * DAY_MS }[
    match[2] as 's' | 'm' | 'h' | 'd' | 'w'
  ]
  return Number(match[1]) * unitMs
}
