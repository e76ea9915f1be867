import type { Queries } from '#db/queries.ts'
import { providerOfCode } from '#providers/providers.ts'
import type { RealTime } from '#shared/time.ts'
import { monthAfter, rangeOf } from './month.ts'
import { countLapsed, countMovements, listCohorts } from './movements/store.ts'
import { renewalRates, type RenewalRate } from './movements/renewal-rates.ts'
import { figuresOf, type SalesFigures, type SalesLine } from './sales/figures.ts'
import { listSoldByMonth, type SoldOfMonth } from './sales/store.ts'
import type { MoneyScope } from './store.ts'

/** What was sold in a month, and how many subscriptions came, stayed and left (R422). */
export interface MonthFigures extends SalesFigures {
  /** `2026-10` */
  readonly month: string
  readonly new: number
  /** Payments before the end of a period. */
  readonly renewed: number
  /** Payments after the end of the last period. */
  readonly returned: number
  /** Periods that ended in the month without having been renewed. */
  readonly lapsed: number
}

export interface Months {
  readonly month: MonthFigures
  readonly previous_month: MonthFigures
  readonly same_month_last_year: MonthFigures
  readonly renewal_rate: readonly RenewalRate[]
}

const COHORT_MONTHS = 12

/** A month, the one before it, the same month of last year, and the renewals of what began in the twelve months up to it. */
export async function gatherMonths(
  db: Queries,
  scope: MoneyScope,
  { month, zone, now }: { readonly month: string; readonly zone: string; readonly now: RealTime },
): Promise<Months> {
  const [previous, lastYear] = [monthAfter(month, -1), monthAfter(month, -12)]
  const ranges = [month, previous, lastYear].map((each) => rangeOf(each, zone))
  const sold = await listSoldByMonth(db, scope, ranges)
  const moved = await countMovements(db, scope, ranges)
  const lapsed = await countLapsed(db, scope, ranges, now)
  const figures = (name: string): MonthFigures => {
    const movements = moved.find((each) => each.month === name)
    return {
      month: name,
      ...figuresOf(sold.filter((each) => each.month === name).map(lineOf)),
      new: movements?.started ?? 0,
      renewed: movements?.renewed ?? 0,
      returned: movements?.returned ?? 0,
      lapsed: lapsed.find((each) => each.month === name)?.lapsed ?? 0,
    }
  }
  const starts = Array.from({ length: COHORT_MONTHS }, (_, back) => rangeOf(monthAfter(month, -back), zone))
  return {
    month: figures(month),
    previous_month: figures(previous),
    same_month_last_year: figures(lastYear),
    renewal_rate: renewalRates(await listCohorts(db, scope, starts)),
  }
}

function lineOf({ currency, planRef: plan, provider, received, discounts, refunds }: SoldOfMonth): SalesLine {
  return { currency, plan, method: methodNamed(provider), received, discounts, refunds }
}

/** The payment method of a stored provider code: `card` of `stripe`. What a promotion paid in full has its own, `promotion`. */
export function methodNamed(provider: string): string {
  return providerOfCode(provider)?.method ?? provider
}
