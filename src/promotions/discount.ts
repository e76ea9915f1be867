/** What a promotion takes off: a percentage, or an amount of one currency. */
export interface Reduction {
  readonly percent: number | null
  /** In the smallest unit of `currency`. */
  readonly amount: number | null
  readonly currency: string | null
}

/** What a promotion takes off one payment. */
export interface Discount {
  readonly code: string
  readonly amount: number
}

/** Whether it takes anything off a price in this currency. */
export function fitsCurrency({ currency }: Pick<Reduction, 'currency'>, priceCurrency: string): boolean {
  return currency === null || currency === priceCurrency
}

/**
 * What is taken off `price`, in its currency's smallest unit: a percentage rounded down, an amount up to the whole price (R352). The
 * product of two safe integers may be no safe integer.
 */
export function reductionOf({ percent, amount }: Reduction, price: number): number {
  if (percent !== null) return Number((BigInt(price) * BigInt(percent)) / 100n)
  return Math.min(amount ?? 0, price)
}

/** The columns of a transaction that hold its amount. */
export interface DiscountedAmount {
  readonly amount: number
  readonly discountAmount: number
  readonly promotionCode: string | null
}

export const NO_DISCOUNT = { discountAmount: 0, promotionCode: null } as const

/** A price less what the promotion takes off; the whole price without one, or where it does not fit the currency. */
export function discounted(
  promotion: (Reduction & { readonly code: string }) | null,
  price: { readonly amount: number; readonly currency: string },
): DiscountedAmount {
  if (!promotion || !fitsCurrency(promotion, price.currency)) return { amount: price.amount, ...NO_DISCOUNT }
  const discountAmount = reductionOf(promotion, price.amount)
  return { amount: price.amount - discountAmount, discountAmount, promotionCode: promotion.code }
}

/** As callers see it; null without a promotion. */
export function discountOf({
  promotionCode,
  discountAmount,
}: Pick<DiscountedAmount, 'promotionCode' | 'discountAmount'>): Discount | null {
  return promotionCode === null ? null : { code: promotionCode, amount: discountAmount }
}
