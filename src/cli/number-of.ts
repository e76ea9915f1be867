import { parseNumericId } from '#shared/ids.ts'
import { requiredChoice } from './ask.ts'
import { UsageError } from './usage-error.ts'

/** The number that an operator gave: an id, an amount. Anything else is wrong usage. */
export function numberOf(text: string, name: string, refusal = `${name} must be a number from 1, not ${text}`): number {
  const number = parseNumericId(text)
  if (number === null) throw new UsageError(refusal)
  return number
}

/** A menu of things with ids. */
interface Menu {
  readonly question: string
  /** Shown after their ids: `17: user-42 ₫99,000`. */
  choices(): readonly IdChoice[] | Promise<readonly IdChoice[]>
  /** The argument, `<id>` if left out. */
  readonly name?: string
  /** The error message for a text that is no number. */
  refusal?(text: string): string
}

export interface IdChoice {
  readonly id: number
  readonly words: string
}

/** The id; on a terminal it is picked from a menu if it is missing. */
export async function pickId(given: string | undefined, menu: Menu): Promise<number> {
  const { name = '<id>' } = menu
  const text = await requiredChoice(given, name, menu.question, async () =>
    (await menu.choices()).map(({ id, words }) => ({ value: String(id), name: `${id}: ${words}` })),
  )
  return numberOf(text, name, menu.refusal?.(text))
}
