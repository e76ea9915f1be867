import type { Locale } from '#shared/locale.ts'
import { formatMoney } from '#shared/money.ts'
import { pageTexts } from './texts.ts'

/** What a payer types in to make a transfer. Amounts in whole dong. */
export interface TransferFacts {
  readonly transferCode: string
  readonly bankName: string
  readonly accountNumber: string
  readonly accountHolder: string
  /** The amount that is still missing. */
  readonly amountDue: number
  readonly amountReceived: number
}

/** One detail of a transfer, as a page shows it. */
export interface Fact {
  readonly label: string
  readonly value: string
  /** What the copy button copies; null without a button. */
  readonly copy: string | null
  readonly copy_label: string
  readonly is_exact: boolean
}

/** The note: the transfer code, by which the transfer is recognized. */
export function noteFact({ transferCode }: TransferFacts, locale: Locale): Fact {
  return factOf(locale, pageTexts(locale).bank.code, transferCode, transferCode)
}

/** Bank, account and holder: banking apps ask for these first, then for the amount and the note (R343). */
export function accountFacts({ bankName, accountNumber, accountHolder }: TransferFacts, locale: Locale): Fact[] {
  const words = pageTexts(locale).bank
  return [
    factOf(locale, words.bankName, bankName),
    factOf(locale, words.accountNumber, accountNumber, accountNumber),
    factOf(locale, words.accountHolder, accountHolder),
  ]
}

/** The amount that is left to pay. */
export function amountFact({ amountDue, amountReceived }: TransferFacts, locale: Locale): Fact {
  const words = pageTexts(locale).bank
  const amount = formatMoney(amountDue, 'VND', locale)
  return factOf(locale, amountReceived > 0 ? words.amountLeft : words.amount, amount, String(amountDue))
}

function factOf(locale: Locale, label: string, value: string, copy: string | null = null): Fact {
  return { label, value, copy, copy_label: pageTexts(locale).bank.copyLabel(label), is_exact: value === copy }
}
