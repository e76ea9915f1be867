import type { DailyTime } from '#config/settings.ts'
import { localTimestamp } from '#reports/month.ts'
import { HOUR_MS, MINUTE_MS, formatDay, type RealTime } from '#shared/time.ts'

/**
 * The day, such as `2026-10-25`, whose digest is the newest at `now`: the date in the zone, or the one before until the time of day. Days
 * are compared rather than instants, since a time of day comes twice or never where clocks are set back or forward.
 */
export function digestDay(now: RealTime, { hours, minutes, zone }: DailyTime): string {
  const shown = Date.parse(`${localTimestamp(now, zone).replace(' ', 'T')}Z`)
  return formatDay(new Date(shown - hours * HOUR_MS - minutes * MINUTE_MS))
}
