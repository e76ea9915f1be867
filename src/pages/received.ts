import { dueOf, keptOf } from '#payments/balance.ts'
import type { Locale } from '#shared/locale.ts'
import { formatMoney } from '#shared/money.ts'
import type { PayableTransaction } from '#transactions/store.ts'
import { pageTexts } from './texts.ts'

/** The amounts of a partly paid transaction, in the smallest unit of `currency`. */
export interface PartPaid {
  readonly received: number
  readonly asked: number
  readonly due: number
  readonly currency: string
}

export function partPaidOf(transaction: PayableTransaction): PartPaid {
  const { amount: asked, currency } = transaction
  return { received: keptOf(transaction), asked, due: dueOf(transaction), currency }
}

/** How much of a payment has arrived, as a sentence; null if nothing has. */
export function receivedOf(transaction: PayableTransaction, locale: Locale): string | null {
  const { amount, currency } = transaction
  const received = keptOf(transaction)
  if (received === 0) return null
  const money = (sum: number): string => formatMoney(sum, currency, locale)
  return pageTexts(locale).checkout.received(money(received), money(amount))
}

/** What has arrived of a payment whose link has expired, and how its rest can still be transferred, as sentences. */
export function restWords(
  { received, asked, due, currency }: PartPaid,
  { transferCode, appName }: { readonly transferCode: string; readonly appName: string },
  locale: Locale,
): string[] {
  const { part } = pageTexts(locale)
  const money = (amount: number): string => formatMoney(amount, currency, locale)
  return [
    part.received(money(received), money(asked), money(due)),
    part.transferRest(money(due), transferCode),
    part.moneyBack(appName),
  ]
}
