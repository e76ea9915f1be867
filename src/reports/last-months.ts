import { monthAfter } from './month.ts'
import type { CashMonth } from './sales/store.ts'

const MAX_MONTHS = 12

/** The months up to the newest one with money, at most a year: those without money in between, too. */
export function lastMonths(known: readonly CashMonth[]): CashMonth[] {
  const [first, newest] = [known[0], known.at(-1)]
  if (!first || !newest) return []
  const byMonth = new Map(known.map((each) => [each.month, each]))
  const names = Array.from({ length: MAX_MONTHS }, (_, back) => monthAfter(newest.month, -back))
  return names
    .filter((name) => name >= first.month)
    .reverse()
    .map((name) => byMonth.get(name) ?? { ...first, month: name, payments: 0, received: 0n, refunded: 0n })
}
