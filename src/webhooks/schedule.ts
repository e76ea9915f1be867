import { addMs, MINUTE_MS, type RealTime } from '#shared/time.ts'

/**
 * The time of the next retry: `now`, when the failed attempt is recorded, plus the next gap of the schedule. Null if no retry is left:
 * the delivery has failed permanently. `retryMinutes` are the gaps of `BILLING_WEBHOOK_RETRY_MINUTES`.
 */
export function nextAttemptAt(retryMinutes: readonly number[], retriesLeft: number, now: RealTime): RealTime | null {
  if (retriesLeft <= 0) return null
  // An event keeps its number of retries. If the schedule has become shorter, the first gap repeats.
  const gapMinutes = retryMinutes[Math.max(0, retryMinutes.length - retriesLeft)]
  return gapMinutes === undefined ? null : addMs(now, gapMinutes * MINUTE_MS)
}
