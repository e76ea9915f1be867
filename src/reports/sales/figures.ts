/** Sums of money by currency, in the smallest unit. */
export type Amounts = Readonly<Record<string, bigint>>

/** Money of a month that came for one plan by one method. Amounts in the smallest unit of `currency`, none negative. */
export interface SalesLine {
  readonly currency: string
  readonly plan: string
  readonly method: string
  readonly received: bigint
  readonly discounts: bigint
  readonly refunds: bigint
}

/** What was sold in a month. `net` is gross − discounts − refunds, and the sum of its parts by plan, and of those by method (R421). */
export interface SalesFigures {
  /** What was received and what promotions took off: gross − discounts is what was received. */
  readonly gross: Amounts
  readonly discounts: Amounts
  readonly refunds: Amounts
  readonly net: Amounts
  readonly by_plan: Readonly<Record<string, Amounts>>
  readonly by_method: Readonly<Record<string, Amounts>>
}

/** The figures of a month's lines. Each of the four sums has every currency of the lines, if only with 0. */
export function figuresOf(lines: readonly SalesLine[]): SalesFigures {
  return {
    gross: sumBy(lines, ({ received, discounts }) => received + discounts),
    discounts: sumBy(lines, ({ discounts }) => discounts),
    refunds: sumBy(lines, ({ refunds }) => refunds),
    net: sumBy(lines, netOf),
    by_plan: netBy(lines, ({ plan }) => plan),
    by_method: netBy(lines, ({ method }) => method),
  }
}

/** Sums by currency, in the order of their codes. */
export function sumBy<T extends { readonly currency: string }>(
  lines: readonly T[],
  amountOf: (line: T) => bigint,
): Amounts {
  const sums = new Map<string, bigint>()
  for (const line of lines) sums.set(line.currency, (sums.get(line.currency) ?? 0n) + amountOf(line))
  return Object.fromEntries([...sums].sort(byName))
}

function netOf({ received, refunds }: SalesLine): bigint {
  return received - refunds
}

function netBy(lines: readonly SalesLine[], keyOf: (line: SalesLine) => string): Record<string, Amounts> {
  const parts = [...Map.groupBy(lines, keyOf)].sort(byName)
  return Object.fromEntries(parts.map(([key, part]) => [key, sumBy(part, netOf)]))
}

function byName([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1
}
