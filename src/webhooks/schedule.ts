import { addMs, MINUTE_MS, type RealTime } from '#shared/time.ts'

/**
 * When a failed delivery is tried again: the next gap of the schedule after `now`, when the attempt that failed is recorded. Null where
 * no retry is left, and the delivery has failed for good. `retryMinutes` are the gaps of `BILLING_WEBHOOK_RETRY_MINUTES`.
 */
export function nextAttemptAt(retryMinutes: readonly number[], retriesLeft: number, now: RealTime): RealTime | null {
  if (retriesLeft <= 0) return null
  // An event keeps the number of retries that it was written with; where the schedule is shorter by now, its first gap stands in.
  const gapMinutes = retryMinutes[Math.max(0, retryMinutes.length - retriesLeft)]
  return gapMinutes === undefined ? null : addMs(now, gapMinutes * MINUTE_MS)
}
