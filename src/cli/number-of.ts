import { parseNumericId } from '#shared/ids.ts'
import { UsageError } from './usage-error.ts'

/** The number that an operator gave: an id, an amount. Anything else is wrong usage. */
export function numberOf(text: string, name: string): number {
  const number = parseNumericId(text)
  if (number === null) throw new UsageError(`${name} must be a number, not ${text}`)
  return number
}
