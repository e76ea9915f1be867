import type { PageLocale, TransferFacts } from '#http/html.ts'
import { formatMoney } from '#shared/money.ts'
import { pageTexts } from './texts.ts'

/** One detail of a transfer, as a page shows it. */
export interface Fact {
  readonly label: string
  readonly value: string
  /** What the copy button copies; null without a button. */
  readonly copy: string | null
  readonly copy_label: string
  readonly is_exact: boolean
}

/** The transfer code, by which the transfer is recognized. */
export function keyOf({ transferCode }: TransferFacts, locale: PageLocale): Fact {
  return factOf(locale, pageTexts(locale).bank.code, transferCode, transferCode)
}

/** Amount, account, bank and holder. */
export function factsOf(transfer: TransferFacts, locale: PageLocale): Fact[] {
  const words = pageTexts(locale).bank
  const { bankName, accountNumber, accountHolder, amountDue, amountReceived } = transfer
  const amount = formatMoney(amountDue, 'VND', locale)
  return [
    factOf(locale, amountReceived > 0 ? words.amountLeft : words.amount, amount, String(amountDue)),
    factOf(locale, words.accountNumber, accountNumber, accountNumber),
    factOf(locale, words.bankName, bankName),
    factOf(locale, words.accountHolder, accountHolder),
  ]
}

function factOf(locale: PageLocale, label: string, value: string, copy: string | null = null): Fact {
  return { label, value, copy, copy_label: pageTexts(locale).bank.copyLabel(label), is_exact: value === copy }
}
