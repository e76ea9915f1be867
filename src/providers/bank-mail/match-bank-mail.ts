import { z } from 'zod'
import type { Context } from '#context.ts'
import { recordAudit } from '#db/audit.ts'
import { inTransaction } from '#db/transaction.ts'
import type { Tx } from '#db/transaction.ts'
import { closeOpenSessions } from '#providers/reconcile-payments.ts'
import { AppError, invalidField, notFound } from '#shared/errors.ts'
import { integer, text, validate } from '#shared/validate.ts'
import { tellOutcome } from '#transactions/confirm-payment.ts'
import { findTransaction } from '#transactions/store.ts'
import type { Transaction } from '#transactions/store.ts'
import { bookMoney } from './book-money.ts'
import type { BookedMoney } from './book-money.ts'
import { isUnmatched } from './list-bank-mails.ts'
import { findBankMail, markBankMailMatched } from './store.ts'
import type { BankMail } from './store.ts'

export const MatchBankMailInput = z.strictObject({
  id: integer(1),
  transactionId: integer(1),
  /** Why; kept in the audit log. */
  note: text(500),
})

export interface MatchedMail {
  readonly status: 'processed' | 'underpaid' | 'already_completed'
  readonly transactionId: number
}

/**
 * An operator says whom a mail's money is for (contract 4, Unmatched money): it is booked as if the mail had named that payment's
 * code. Throws `not_found`, and `invalid_request` where the mail needs no match, or the payment is not in VND.
 */
export async function matchBankMail(ctx: Context, actor: string, input: unknown): Promise<MatchedMail> {
  const { id, transactionId, note } = validate(MatchBankMailInput, input)
  const { booked, status } = await inTransaction(ctx, async (tx) => {
    const mail = await requireUnmatched(ctx, tx, id)
    const transaction = await requirePayable(tx, transactionId)
    const money = await bookMoney(tx, moneyOf(mail), transactionId)
    if (money.kind === 'duplicate')
      throw new AppError('invalid_request', 'this money was booked before, from another mail')
    await markMatched(tx, mail, transaction)
    await recordAudit(tx, {
      actor,
      action: 'bank-mail.match',
      appId: transaction.appId,
      subject: `bank mail ${id}`,
      before: { status: mail.status, reason: mail.reason },
      after: { transaction_id: transactionId, outcome: money.kind, amount: mail.amount },
      reason: note,
    })
    return { booked: money, status: money.kind }
  })
  report(ctx, booked)
  if (status === 'processed') await closeOpenSessions(ctx, transactionId)
  return { status, transactionId }
}

async function requireUnmatched(ctx: Context, tx: Tx, mailId: number): Promise<BankMail> {
  const mail = await findBankMail(tx, mailId)
  if (!mail) throw notFound('bank mail')
  if (!isUnmatched(ctx, mail)) throw invalidField('id', 'is not a mail whose money waits for a match')
  return mail
}

async function requirePayable(tx: Tx, transactionId: number): Promise<Transaction> {
  const transaction = await findTransaction(tx, transactionId)
  if (!transaction) throw notFound('transaction')
  if (transaction.currency !== 'VND') throw invalidField('transaction_id', 'is not in VND')
  return transaction
}

/** The money as the mail told of it when it came. */
function moneyOf(mail: BankMail): Parameters<typeof bookMoney>[1] {
  const { bank, bankReference, amount, messageIdHash, receivedAt } = mail
  if (bank === null || bankReference === null || amount === null)
    throw new Error(`bank mail ${mail.id} tells of no money`)
  return { bank, reference: bankReference, messageIdHash, amount, paidAt: receivedAt }
}

async function markMatched(tx: Tx, mail: BankMail, transaction: Transaction): Promise<void> {
  const changes = { transactionId: transaction.id, appId: transaction.appId }
  if (!(await markBankMailMatched(tx, mail.id, changes))) throw invalidField('id', 'was matched meanwhile')
}

function report(ctx: Context, { payment, confirmed }: BookedMoney): void {
  if (confirmed) tellOutcome(ctx, payment, confirmed)
}
