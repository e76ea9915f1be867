import { addMs, MINUTE_MS, type RealTime } from '#shared/time.ts'

/**
 * When to retry a failed delivery: the next gap of the schedule after `now`, the time when the failed attempt is recorded. Null if no
 * retry is left and the delivery has failed permanently. `retryMinutes` are the gaps of `BILLING_WEBHOOK_RETRY_MINUTES`.
 */
export function nextAttemptAt(retryMinutes: readonly number[], retriesLeft: number, now: RealTime): RealTime | null {
  if (retriesLeft <= 0) return null
  // An event keeps its number of retries: where the schedule has become shorter, the first gap is repeated.
  const gapMinutes = retryMinutes[Math.max(0, retryMinutes.length - retriesLeft)]
  return gapMinutes === undefined ? null : addMs(now, gapMinutes * MINUTE_MS)
}
