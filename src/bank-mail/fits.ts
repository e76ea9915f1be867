import { englishMoney } from '#shared/money.ts'
import type { ListedMail } from './list-bank-mails.ts'
import type { Suggestion } from './suggest-transactions.ts'

/** Unmatched money with a transaction that it may be for. */
export interface Fit {
  readonly bank_mail_id: number
  readonly transaction_id: number
  /** `₫99,000 of 28 Oct fits transaction 1 (user-lan, pending)` */
  readonly what: string
  /** The command, without `billing-cli`; complete, so that a script may run it as it is. */
  readonly command: string
}

// Made for the first mail that fits: making it takes longer than loading this file and all that it imports.
let day: Intl.DateTimeFormat | undefined

/** The transaction that fits the money of a mail best, or the given one; null if none fits, or if the mail does not prove its money. */
export function fitOf(mail: ListedMail, transactionId?: number): Fit | null {
  const { id, amount, review, suggestions, received_at: at } = mail
  const best = suggestions.find(({ transaction_id: one }) => transactionId === undefined || one === transactionId)
  if (!best || amount === null || review !== 'credit') return null
  day ??= new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' })
  const money = `${englishMoney(amount, 'VND')} of ${day.format(new Date(`${at.replace(' ', 'T')}Z`))}`
  return {
    bank_mail_id: id,
    transaction_id: best.transaction_id,
    what: `${money} ${relationOf(amount, best)}`,
    command: `bank-mail match ${id} ${best.transaction_id} --note "…"`,
  }
}

function relationOf(amount: number, { transaction_id: id, external_ref: ref, amount_due: due }: Suggestion): string {
  if (amount === due) return `fits transaction ${id} (${ref}, pending)`
  return `may be for transaction ${id} (${ref}, ${englishMoney(due, 'VND')} due)`
}
