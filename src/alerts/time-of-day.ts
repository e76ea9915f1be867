import type { DailyTime } from '#config.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, addMs, asRealTime, type RealTime } from '#shared/time.ts'

/** The last instant up to `now` at which clocks in the zone showed this time of day. */
export function lastTimeOfDay(now: RealTime, { hours, minutes, zone }: DailyTime): RealTime {
  const target = hours * HOUR_MS + minutes * MINUTE_MS
  const shown = shownTime(now, zone)
  const since = (shown - target + DAY_MS) % DAY_MS
  return asRealTime(new Date(Math.floor(addMs(now, -since).getTime() / MINUTE_MS) * MINUTE_MS))
}

/** What clocks in the zone show, since midnight. */
function shownTime(now: RealTime, zone: string): number {
  const parts = new Intl.DateTimeFormat('en', {
    timeZone: zone,
    hourCycle: 'h23',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  }).formatToParts(now)
  const of = (type: string): number => Number(parts.find((part) => part.type === type)?.value ?? 0)
  return of('hour') * HOUR_MS + of('minute') * MINUTE_MS + of('second') * SECOND_MS
}
