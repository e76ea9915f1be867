import { unixSeconds, type RealTime } from './time.ts'

/** How many seconds a signed time may be from our clock, either way (R3). */
export const SIGNED_TIME_TOLERANCE_SECONDS = 300

/**
 * How many seconds a signed time in Unix seconds is behind our clock; negative if it is ahead. Null for anything but 1 to 12 digits.
 */
export function secondsBehind(signedTime: string, now: RealTime): number | null {
  return /^\d{1,12}$/.test(signedTime) ? unixSeconds(now) - Number(signedTime) : null
}

/** Whether a signed time in Unix seconds is close enough to our clock (R3). */
export function isTimely(signedTime: string, now: RealTime): boolean {
  const behind = secondsBehind(signedTime, now)
  return behind !== null && Math.abs(behind) <= SIGNED_TIME_TOLERANCE_SECONDS
}
