import type { DiscountedAmount } from '#promotions/discount.ts'
import type { Locale } from '#shared/locale.ts'
import { formatMoney } from '#shared/money.ts'

const OFF: Record<Locale, (off: string, code: string) => string> = {
  en: (off, code) => `${off} off with the code ${code}`,
  vi: (off, code) => `đã giảm ${off} nhờ mã ${code}`,
}

/** `₫79,200 (₫19,800 off with the code TET)`; without a promotion the amount alone. */
export function discountedWords(due: DiscountedAmount, currency: string, locale: Locale): string {
  const amount = formatMoney(due.amount, currency, locale)
  if (due.promotionCode === null) return amount
  return `${amount} (${OFF[locale](formatMoney(due.discountAmount, currency, locale), due.promotionCode)})`
}

/** `₫19,800 (TET)`: what a promotion took off a payment; empty without one. */
export function discountFact(due: DiscountedAmount & { readonly currency: string }, locale: Locale): string {
  if (due.promotionCode === null) return ''
  return `${formatMoney(due.discountAmount, due.currency, locale)} (${due.promotionCode})`
}
