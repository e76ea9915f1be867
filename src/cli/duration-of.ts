import { parseDuration } from '#shared/time.ts'
import { UsageError } from './usage-error.ts'

/** The milliseconds of a duration that an operator gave. Anything else, and more than `most`, is wrong usage. */
export function durationOf(text: string, name: string, most = '36500d'): number {
  const ms = parseDuration(text)
  if (ms === null || ms > (parseDuration(most) ?? 0))
    throw new UsageError(`${name} must be a duration such as 30m, 36h or 7d, and at most ${most}`)
  return ms
}
