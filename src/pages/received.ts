import type { PageLocale } from '#http/html.ts'
import { keptOf } from '#payments/balance.ts'
import { formatMoney } from '#shared/money.ts'
import type { Transaction } from '#transactions/store.ts'
import { pageTexts } from './texts.ts'

/** How much of a payment has arrived, as a sentence; null if nothing has. */
export function receivedOf(transaction: Transaction, locale: PageLocale): string | null {
  const { amount, currency } = transaction
  const received = keptOf(transaction)
  if (received === 0) return null
  const money = (sum: number): string => formatMoney(sum, currency, locale)
  return pageTexts(locale).checkout.received(money(received), money(amount))
}
