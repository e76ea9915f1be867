import type { Queries } from '#db/queries.ts'
import { listKeptOfPayment } from '#payments/store.ts'
import { found, invalidField } from '#shared/errors.ts'
import { formatUtc } from '#shared/time.ts'
import { findBankMail, type BankMail } from './store.ts'

/** A mail that waits for an operator. Throws `not_found`, or `invalid_request` with the reason why it does not wait. */
export async function requireWaitingMail(db: Queries, mailId: number): Promise<BankMail> {
  const mail = found(await findBankMail(db, mailId), 'bank mail')
  if (mail.review !== null) return mail
  if (mail.closedAt) throw invalidField('id', `was closed at ${formatUtc(mail.closedAt)}`)
  const where = mail.paymentId === null ? '' : `: ${await whereMoneyIs(db, mail.paymentId)}`
  throw invalidField('id', `is not a mail whose money waits for a match${where}`)
}

/** `it is booked for transaction 3; 'payment move 7' books it elsewhere` */
async function whereMoneyIs(db: Queries, paymentId: number): Promise<string> {
  const booked = (await listKeptOfPayment(db, paymentId)).map(({ transactionId }) => transactionId)
  if (booked.length === 0) return `'payment show ${paymentId}' says where it is`
  return `it is booked for transaction ${booked.join(', ')}; 'payment move ${paymentId}' books it elsewhere`
}

/** The state of the mail before an operator's decision, for the audit log. */
export function reviewedState({ status, reason, review, amount }: BankMail): Record<string, unknown> {
  return { status, reason, review, amount }
}
