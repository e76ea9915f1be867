import type { Queries } from '#db/queries.ts'
import { invalidField, notFound } from '#shared/errors.ts'
import { formatUtc } from '#shared/time.ts'
import { findBankMail, type BankMail } from './store.ts'

/** A mail that waits for an operator. Throws `not_found`, or `invalid_request` with the reason why it does not wait. */
export async function requireWaitingMail(db: Queries, mailId: number): Promise<BankMail> {
  const mail = await findBankMail(db, mailId)
  if (!mail) throw notFound('bank mail')
  if (mail.review !== null) return mail
  if (mail.closedAt) throw invalidField('id', `was closed at ${formatUtc(mail.closedAt)}`)
  if (mail.paymentId !== null && mail.transactionId !== null)
    throw invalidField(
      'id',
      `is not a mail whose money waits for a match: it was booked for transaction ${mail.transactionId}; 'payment move ${mail.paymentId}' books it elsewhere`,
    )
  throw invalidField('id', 'is not a mail whose money waits for a match')
}

/** The state of the mail before an operator's decision, for the audit log. */
export function reviewedState({ status, reason, review, amount }: BankMail): Record<string, unknown> {
  return { status, reason, review, amount }
}
