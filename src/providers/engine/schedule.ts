import { addMs, doublingPauseMs, HOUR_MS, MINUTE_MS, type RealTime } from '#shared/time.ts'

const FIRST_LOOKUP_MS = 10 * MINUTE_MS
const MAX_GAP_MS = 6 * HOUR_MS
const FIRST_RETRY_MS = 2 * MINUTE_MS
const FIRST_PAUSE_MS = MINUTE_MS
const MAX_PAUSE_MS = 15 * MINUTE_MS
/** One look-up follows the end of each session, to distinguish paid from expired. */
const AFTER_EXPIRY_MS = 5 * MINUTE_MS
/** Slow payment methods complete within days. After this, a session is closed, whether or not the provider answers. */
const GIVE_UP_MS = 14 * 24 * HOUR_MS

/** When a session opened at `openedAt` is looked up at its provider for the first time (R213: 10 minutes after opening). */
export function firstLookupAt(openedAt: RealTime): RealTime {
  return addMs(openedAt, FIRST_LOOKUP_MS)
}

/** When the look-up after the `lookups`-th is due: the gaps double from 10 minutes to 6 hours. */
export function nextLookupAt(
  session: { readonly lookups: number; readonly expiresAt: RealTime },
  now: RealTime,
): RealTime {
  const gapMs = doublingPauseMs(FIRST_LOOKUP_MS, session.lookups, MAX_GAP_MS)
  const regular = addMs(now, gapMs)
  const afterExpiry = addMs(session.expiresAt, AFTER_EXPIRY_MS)
  return now < afterExpiry && afterExpiry < regular ? afterExpiry : regular
}

/**
 * When a session whose look-up or closing failed is tried again: after 2 minutes, then after twice as long each time, and never later
 * than `nextLookupAt`. `failures` are those in a row before this one.
 */
export function retryAt(
  session: { readonly lookups: number; readonly expiresAt: RealTime; readonly failures: number },
  now: RealTime,
): RealTime {
  const regular = nextLookupAt(session, now)
  const retry = addMs(now, doublingPauseMs(FIRST_RETRY_MS, session.failures, MAX_GAP_MS))
  return retry < regular ? retry : regular
}

/** How long an account is paused after its provider failed: 1 minute, then twice as long each time, 15 minutes at most. */
export function pauseMs(failures: number): number {
  return doublingPauseMs(FIRST_PAUSE_MS, failures, MAX_PAUSE_MS)
}

/** Whether the session has been over for so long that no more look-ups are made. */
export function isGivenUp(session: { readonly expiresAt: RealTime }, now: RealTime): boolean {
  return now > addMs(session.expiresAt, GIVE_UP_MS)
}
