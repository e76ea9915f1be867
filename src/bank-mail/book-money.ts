import type { Queries } from '#db/queries.ts'
import type { OperatorNote } from '#commands/operator-note.ts'
import type { Tx } from '#commands/transaction.ts'
import { insertPayment, lockPaymentOf, updatePayment } from '#payments/store.ts'
import type { Received } from '#transactions/complete-transaction.ts'
import { confirmPayment, type ConfirmedPayment, type Recorded } from '#transactions/confirm-payment.ts'
import { hasProviderEvent } from '#transactions/store.ts'
import { findBankAccount } from '#bank-accounts/store.ts'
import type { RealTime } from '#shared/time.ts'
import { hasBookedCopy, type BankMail } from './store.ts'

/** The bank in the reference of money whose mail shows neither its bank nor one of our accounts. */
const UNKNOWN_BANK = '?'

/** Money that a genuine mail reported. */
export interface MailMoney {
  /** Short code. */
  readonly bank: string
  /** Of the payment: the bank, and its id of the movement, or what replaces that id. */
  readonly reference: string
  readonly messageIdHash: string | null
  /** Our account that was credited; null if the mail does not show it. */
  readonly bankAccountId: number | null
  /** Whole dong. */
  readonly amount: number
  readonly paidAt: RealTime
}

/** What tells whether the money of a mail was booked before. */
type Identified = Pick<BankMail, 'bank' | 'bankReference' | 'messageId' | 'messageIdHash'>

export type BookedMoney = (Received & Recorded) | { readonly kind: 'duplicate' }

/**
 * Books the money for the transaction with `confirmPayment`. `duplicate` if a mail with the same Message-ID, or about the same movement,
 * was booked before. Unique keys in the same database transaction guarantee both, even for concurrent copies.
 */
export async function bookMoney(
  tx: Tx,
  money: MailMoney,
  transactionId: number,
  operatorNote?: OperatorNote,
): Promise<BookedMoney> {
  const booked = await confirmPayment(tx, {
    provider: 'bank_transfer',
    events: eventsOf(money),
    reference: money.reference,
    bankAccountId: money.bankAccountId,
    transactionId,
    amount: money.amount,
    currency: 'VND',
    paidAt: money.paidAt,
    ...(operatorNote ? { operatorNote } : {}),
  })
  switch (booked.kind) {
    case 'unknown_transaction':
    case 'wrong_currency':
      throw new Error(`transaction ${transactionId} cannot take a bank transfer: ${booked.kind}`)
    case 'known_money':
      return { kind: 'duplicate' }
    case 'duplicate':
    case 'processed':
    case 'underpaid':
    case 'already_completed':
      return booked
  }
}

/** Money of a mail that cannot be booked for a transaction yet. */
export interface UnallocatedMoney extends Pick<MailMoney, 'reference' | 'bankAccountId' | 'paidAt'> {
  /** Null if the mail does not prove it, until an operator states it. */
  readonly amount: number | null
  /** Null if the app is not known. */
  readonly appId: number | null
}

/** A payment that is recorded without a transaction. */
export interface RecordedMoney {
  readonly paymentId: number
  /** Whether its mails wait for an operator: nothing of it was booked, refunded or closed. */
  readonly isWaiting: boolean
}

/**
 * Records money that cannot be booked for a transaction yet, so that operators find it among the payments. Of several mails about one
 * movement, the first adds the payment, and the first that proves an amount sets it.
 */
export async function recordUnallocatedMoney(tx: Tx, money: UnallocatedMoney): Promise<RecordedMoney> {
  const { reference, amount, appId, bankAccountId, paidAt } = money
  const inserted = await insertPayment(tx, {
    appId,
    endUserId: null,
    provider: 'bank_transfer',
    providerAccountId: null,
    bankAccountId,
    reference,
    chargeReference: null,
    amount,
    amountLeft: amount,
    currency: 'VND',
    paidAt,
    receivedAt: tx.now,
    closedAt: null,
  })
  if (inserted !== null) return { paymentId: inserted, isWaiting: true }
  const existing = await lockPaymentOf(tx, 'bank_transfer', reference)
  if (!existing) throw new Error(`the payment ${reference} exists and cannot be read`)
  if (existing.amount === null && amount !== null) {
    // An operator may have closed an earlier mail that proved nothing. This mail does prove an amount.
    await updatePayment(tx, existing.id, { amount, amountLeft: amount, closedAt: null })
    return { paymentId: existing.id, isWaiting: true }
  }
  return { paymentId: existing.id, isWaiting: existing.closedAt === null && existing.amountLeft === existing.amount }
}

/** The identity of a mail's money, so that it is not booked twice: the bank's movement, or else the mail's content. */
export async function movementOf(
  db: Queries,
  mail: Pick<BankMail, 'bank' | 'bankReference' | 'bankAccountId' | 'contentHash'>,
): Promise<Pick<MailMoney, 'bank' | 'reference'>> {
  const { bankReference, bankAccountId, contentHash } = mail
  const account = mail.bank !== null || bankAccountId === null ? null : await findBankAccount(db, bankAccountId)
  const bank = mail.bank ?? account?.bank ?? UNKNOWN_BANK
  return { bank, reference: paymentReferenceOf(bank, bankReference ?? `content ${contentHash}`) }
}

/** The reference of the payment that a bank's movement becomes: `ACB FT26123`. */
export function paymentReferenceOf(bank: string, movement: string): string {
  return `${bank} ${movement}`
}

/** Whether the money that a mail reports was booked or refunded before: its movement, or the same mail when it could be read less well. */
export async function isBooked(db: Queries, mail: Identified): Promise<boolean> {
  const { bank, bankReference } = mail
  if (bank === null || bankReference === null) return false
  const movement = movementEvent(paymentReferenceOf(bank, bankReference))
  return (await hasProviderEvent(db, 'bank_transfer', movement)) || (await hasBookedCopy(db, mail))
}

function movementEvent(reference: string): string {
  return `movement ${reference}`
}

/**
 * Whether the mail names another movement than the one that was booked under its Message-ID: a bank may give two movements one Message-ID.
 * A mail that names none may be about the booked one.
 */
export async function isAnotherMovement(db: Queries, bank: string, mail: Identified): Promise<boolean> {
  const { bankReference, messageIdHash } = mail
  if (bankReference === null || messageIdHash === null) return false
  const isMessageBooked = await hasProviderEvent(db, 'bank_transfer', messageEvent(bank, messageIdHash))
  return isMessageBooked && !(await hasBookedCopy(db, mail))
}

function messageEvent(bank: string, messageIdHash: string): string {
  return `message ${bank} ${messageIdHash}`
}

/** The mail, where it has a Message-ID, and the movement that it reports. */
function eventsOf({ bank, reference, messageIdHash }: MailMoney): ConfirmedPayment['events'] {
  const movement = { eventId: movementEvent(reference), eventType: 'bank_mail.credit' }
  if (messageIdHash === null) return [movement]
  return [{ eventId: messageEvent(bank, messageIdHash), eventType: 'bank_mail.message' }, movement]
}
