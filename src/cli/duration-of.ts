import { parseDuration } from '#shared/time.ts'
import { UsageError } from './usage-error.ts'

/** The milliseconds of a duration that an operator gave. One that is not from `least` to `most` is wrong usage. */
export function durationOf(text: string, name: string, { least = '0s', most = '36500d' } = {}): number {
  const ms = parseDuration(text)
  if (ms === null || ms < Number(parseDuration(least)) || ms > Number(parseDuration(most)))
    throw new UsageError(`${name} must be a duration such as 30m, 36h or 7d, from ${least} to ${most}`)
  return ms
}
