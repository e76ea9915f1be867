import { z } from 'zod'
import type { Context } from '#context.ts'
import { recordAudit } from '#db/audit.ts'
import { inTransaction } from '#db/transaction.ts'
import type { Tx } from '#db/transaction.ts'
import { closeOpenSessions } from '#providers/reconcile-payments.ts'
import { AppError, invalidField, notFound } from '#shared/errors.ts'
import { formatTimestampOrNull } from '#shared/time.ts'
import { integer, text, validate } from '#shared/validate.ts'
import { findSubscriptionOfEndUser } from '#subscriptions/store.ts'
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

/** What a match would do, shown before it is confirmed. */
export interface MatchPreview extends MatchedMail {
  /** Sentences for the operator. */
  readonly effects: readonly string[]
}

/**
 * An operator says whom a mail's money is for (contract 4, Unmatched money): it is booked as if the mail had named that payment's
 * code. Throws `not_found`, and `invalid_request` where the mail needs no match, or the payment is not in VND.
 */
export async function matchBankMail(ctx: Context, actor: string, input: unknown): Promise<MatchedMail> {
  const { id, transactionId, note } = validate(MatchBankMailInput, input)
  const { money, status } = await inTransaction(ctx, async (tx) => {
    const match = await matchIn(tx, id, transactionId)
    await recordAudit(tx, {
      actor,
      action: 'bank-mail.match',
      appId: match.transaction.appId,
      subject: `bank mail ${id}`,
      before: { status: match.mail.status, reason: match.mail.reason },
      after: { transaction_id: transactionId, outcome: match.status, amount: match.mail.amount },
      reason: note,
    })
    return match
  })
  report(ctx, money)
  if (status === 'processed') await closeOpenSessions(ctx, transactionId)
  return { status, transactionId }
}

/** Says what `matchBankMail` would do: does it, looks, and takes it back. Throws as it would. */
export async function previewMatch(ctx: Context, id: number, transactionId: number): Promise<MatchPreview> {
  try {
    return await inTransaction(ctx, async (tx) => {
      const before = await validUntil(tx, transactionId)
      const match = await matchIn(tx, id, transactionId)
      const effects = effectsOf(match, before, await validUntil(tx, transactionId))
      throw new TakenBack({ status: match.status, transactionId, effects })
    })
  } catch (thrown) {
    if (thrown instanceof TakenBack) return thrown.preview
    throw thrown
  }
}

/** Rolls a preview's work back. */
class TakenBack extends Error {
  readonly preview: MatchPreview

  constructor(preview: MatchPreview) {
    super('a preview')
    this.preview = preview
  }
}

interface Match {
  readonly mail: BankMail
  readonly transaction: Transaction
  readonly money: BookedMoney
  readonly status: MatchedMail['status']
}

async function matchIn(tx: Tx, mailId: number, transactionId: number): Promise<Match> {
  const mail = await requireUnmatched(tx.ctx, tx, mailId)
  const transaction = await requirePayable(tx, transactionId)
  const money = await bookMoney(tx, moneyOf(mail), transactionId)
  if (money.kind === 'duplicate')
    throw new AppError('invalid_request', 'this money was booked before, from another mail')
  await markMatched(tx, mail, transaction)
  return { mail, transaction, money, status: money.kind }
}

function effectsOf({ mail, transaction, status }: Match, before: string, after: string): string[] {
  const { id, externalRef, amount, amountReceived, currency } = transaction
  const booked = `${mail.amount ?? 0} ${currency} of ${mail.bank ?? 'the bank'} are booked for transaction ${id} of ${externalRef}`
  switch (status) {
    case 'processed':
      return [booked, 'the transaction completes', `valid until: ${before} -> ${after}`]
    case 'underpaid':
      return [
        booked,
        `${amountReceived + (mail.amount ?? 0)} of ${amount} ${currency} have come then: flagged underpaid`,
      ]
    case 'already_completed':
      return [booked, `the transaction is ${transaction.status} already: flagged, for money that came twice`]
  }
}

async function validUntil(tx: Tx, transactionId: number): Promise<string> {
  const transaction = await findTransaction(tx, transactionId)
  const subscription = transaction && (await findSubscriptionOfEndUser(tx, transaction.endUserId))
  if (!subscription) return 'no subscription'
  return formatTimestampOrNull(subscription.currentPeriodEnd) ?? 'for ever'
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
