import type { Tx } from '#commands/transaction.ts'
import { findAssignment, findSoleOwner } from '#bank-accounts/store.ts'
import {
  isBooked,
  movementOf,
  recordUnallocatedMoney,
  type RecordedMoney,
  type UnallocatedMoney,
} from './book-money.ts'
import type { RelayAnswer } from './mail-answer.ts'
import { insertBankMail, listMailsOfPayment, type BankMail } from './store.ts'

/** What is kept of a mail before it is decided (R199). */
export type MailSummary = Omit<BankMail, 'id' | 'receivedAt' | 'status' | 'reason' | 'paymentId'>

/** Keeps a mail whose money no transaction gets. Operators see the money if it was not booked before. */
export async function keepMail(tx: Tx, summary: MailSummary, answer: RelayAnswer): Promise<void> {
  const isReviewed = summary.review !== null && !(await isBooked(tx, summary))
  const waiting = isReviewed ? await recordMoneyOf(tx, summary) : null
  await insertBankMail(tx, {
    ...summary,
    ...columnsOf(answer),
    paymentId: waiting?.paymentId ?? null,
    review: waiting?.isWaiting === true ? summary.review : null,
    receivedAt: tx.now,
  })
}

/**
 * Records the money of a mail that waits. A bank may write the same words about another movement: once the money of such a mail is booked
 * or closed, another mail with its content is about new money.
 */
async function recordMoneyOf(tx: Tx, summary: MailSummary): Promise<RecordedMoney> {
  const money = await unallocatedMoneyOf(tx, summary)
  const recorded = await recordUnallocatedMoney(tx, money)
  const { bankReference, messageIdHash } = summary
  if (recorded.isWaiting || bankReference !== null || messageIdHash === null) return recorded
  const isCopy = (await listMailsOfPayment(tx, recorded.paymentId)).some((mail) => mail.messageIdHash === messageIdHash)
  if (isCopy) return recorded
  return recordUnallocatedMoney(tx, { ...money, reference: `${money.reference} ${messageIdHash}` })
}

/** The money of a mail for operators. Its amount counts only if the mail proves it. */
async function unallocatedMoneyOf(tx: Tx, summary: MailSummary): Promise<UnallocatedMoney> {
  const { review, amount, bankAccountId, appId } = summary
  const owner = bankAccountId === null ? appId : await ownerOf(tx, bankAccountId, appId)
  const { reference } = await movementOf(tx, summary)
  const paidAt = tx.now
  return { reference, amount: review === 'credit' ? amount : null, bankAccountId, appId: owner, paidAt }
}

/** The app that owns the money. If several apps have or had the account, it is the app of the transfer code, unless that app never had it. */
async function ownerOf(tx: Tx, bankAccountId: number, codesAppId: number | null): Promise<number | null> {
  const sole = await findSoleOwner(tx, bankAccountId)
  if (sole !== null || codesAppId === null) return sole
  return (await findAssignment(tx, codesAppId, bankAccountId)) ? codesAppId : null
}

/** The columns of a mail that hold its answer. */
export function columnsOf(answer: RelayAnswer): Pick<BankMail, 'status' | 'reason'> {
  return { status: answer.status, reason: 'reason' in answer ? answer.reason : null }
}
