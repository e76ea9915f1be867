import { DAY_MS, addMs, parseDay, parseTimestamp } from '#shared/time.ts'
import type { OptionLine } from './declaration.ts'
import { UsageError } from './usage-error.ts'

/** The options of `moneyOptions`, as typed. */
export interface MoneyFilterOptions {
  readonly since?: string
  readonly until?: string
  readonly method?: string
}

/** Which rows of a list of money are shown; null where it makes no difference. */
export interface MoneyFilter {
  /** The first instant. */
  readonly since: Date | null
  /** The first instant that is too late. */
  readonly until: Date | null
  /** The stored code of a method's provider. */
  readonly provider: string | null
}

/** The options of a list of money; `verb` says what its time is: `opened`. */
export function moneyOptions(verb: string): OptionLine[] {
  return [
    ['--since <date>', `only those ${verb} on this day or later (UTC), such as 2026-10-28 or 28/10/2026`],
    ['--until <date>', `only those ${verb} on this day or earlier (UTC)`],
    ['--method <method>', 'only those paid by this method, as method list names it, or by promotion'],
  ]
}

export async function readMoneyFilter({ since, until, method }: MoneyFilterOptions): Promise<MoneyFilter> {
  const begin = instantOf(since, '--since')
  const end = instantOf(until, '--until')
  return {
    since: begin?.at ?? null,
    until: end && (end.isDay ? addMs(end.at, DAY_MS) : end.at),
    provider: method === undefined ? null : await providerCode(method),
  }
}

function instantOf(text: string | undefined, option: string): { readonly at: Date; readonly isDay: boolean } | null {
  if (text === undefined) return null
  const day = parseDay(text)
  const at = day ?? parseTimestamp(text)
  if (!at) throw new UsageError(`${option} must be a day, such as 2026-10-28, or a time, such as 2026-10-28 09:30:00`)
  return { at, isDay: day !== null }
}

/** The stored code of a method; a stored code, as lists show it in JSON, stays as it is. */
async function providerCode(method: string): Promise<string> {
  const { METHODS, isMethod, providerOf, providerOfCode } = await import('#providers/providers.ts')
  const { PROMOTION_CODE } = await import('#checkout/promote.ts')
  if (method === PROMOTION_CODE) return method
  const code = isMethod(method) ? providerOf(method).code : providerOfCode(method)?.code
  if (code === undefined) throw new UsageError(`--method must be one of ${METHODS.join(', ')}, ${PROMOTION_CODE}`)
  return code
}
