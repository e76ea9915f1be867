import { durationOf } from './duration-of.ts'
import { UsageError } from './usage-error.ts'

/** The API's body for `app clock`; null if the command only reads the time. */
export function clockInput({ advance, now }: { readonly advance?: string; readonly now?: string }): object | null {
  if (advance !== undefined && now !== undefined) throw new UsageError('--advance and --now exclude each other')
  if (now !== undefined) return { now }
  return advance === undefined ? null : { advance_seconds: durationOf(advance, '--advance') / 1000 }
}
