import type { Queries } from '#db/queries.ts'
import type { Tx } from '#commands/transaction.ts'
import { confirmIn, type ConfirmedPayment, type ConfirmOutcome } from '#transactions/confirm-payment.ts'
import { hasProviderEvent, insertProviderEvent } from '#transactions/store.ts'
import type { RealTime } from '#shared/time.ts'

/** Money that a genuine mail told of. */
export interface MailMoney {
  /** Short code. */
  readonly bank: string
  /** What the bank calls the movement, or a fingerprint of it. */
  readonly reference: string
  readonly messageIdHash: string | null
  /** Whole dong. */
  readonly amount: number
  readonly paidAt: RealTime
}

export interface BookedMoney {
  readonly kind: 'processed' | 'underpaid' | 'already_completed' | 'duplicate'
  readonly transactionStatus: string
  readonly payment: ConfirmedPayment
  /** Null where the mail was known, so that nothing was reported. */
  readonly confirmed: ConfirmOutcome | null
}

/**
 * Books the money for the transaction, through the one door for money. `duplicate` where a mail of the same Message-ID, or about the
 * same movement, was booked before. Both are kept under a unique key in the transaction that books the money: of copies that come
 * at once one is booked, and none is remembered whose money was not.
 */
export async function bookMoney(tx: Tx, money: MailMoney, transactionId: number): Promise<BookedMoney> {
  const payment: ConfirmedPayment = {
    provider: 'bank_transfer',
    eventId: movementEvent(money.bank, money.reference),
    eventType: 'bank_mail.credit',
    reference: `${money.bank} ${money.reference}`,
    transactionId,
    amount: money.amount,
    currency: 'VND',
    paidAt: money.paidAt,
  }
  if (!(await rememberMessage(tx, money, transactionId))) {
    return { kind: 'duplicate', transactionStatus: '', payment, confirmed: null }
  }
  const confirmed = await confirmIn(tx, payment)
  const { kind, transaction } = confirmed
  if (kind === 'unknown_transaction' || kind === 'wrong_currency' || !transaction) {
    throw new Error(`transaction ${transactionId} cannot take a bank transfer: ${kind}`)
  }
  return { kind, transactionStatus: transaction.status, payment, confirmed }
}

/** Whether the movement that a mail tells of was booked before. */
export async function isBooked(
  db: Queries,
  { bank, bankReference }: { readonly bank: string | null; readonly bankReference: string | null },
): Promise<boolean> {
  if (bank === null || bankReference === null) return false
  return hasProviderEvent(db, 'bank_transfer', movementEvent(bank, bankReference))
}

function movementEvent(bank: string, reference: string): string {
  return `movement ${bank} ${reference}`
}

/** Whether no mail of this Message-ID was booked before. */
async function rememberMessage(tx: Tx, { bank, messageIdHash }: MailMoney, transactionId: number): Promise<boolean> {
  if (messageIdHash === null) return true
  return insertProviderEvent(tx, {
    provider: 'bank_transfer',
    eventId: `message ${bank} ${messageIdHash}`,
    eventType: 'bank_mail.message',
    appId: null,
    transactionId,
    outcome: 'applied',
    note: null,
    receivedAt: tx.now,
  })
}
