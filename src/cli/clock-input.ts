import { parseDuration } from '#shared/time.ts'
import { UsageError } from './usage-error.ts'

/** The API's body for `app clock`; null if the command only reads the time. */
export function clockInput({ advance, now }: { readonly advance?: string; readonly now?: string }): object | null {
  if (advance !== undefined && now !== undefined) throw new UsageError('--advance and --now exclude each other')
  if (now !== undefined) return { now }
  if (advance === undefined) return null
  const ms = parseDuration(advance)
  if (ms === null) throw new UsageError('--advance must be a number with s, m, h, d or w: 36h, 30d')
  return { advance_seconds: ms / 1000 }
}
