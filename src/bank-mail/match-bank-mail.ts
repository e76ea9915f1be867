import { z } from 'zod'
import { refuseForeignMoney } from '#bank-accounts/refuse-foreign-money.ts'
import type { Caller } from '#commands/caller.ts'
import { command } from '#commands/command.ts'
import { noteField, noteOf, type OperatorNote } from '#commands/operator-note.ts'
import { perform } from '#commands/perform.ts'
import { rehearsedEvents } from '#commands/rehearsed-events.ts'
import type { Tx } from '#commands/transaction.ts'
import { rehearsing, type Context } from '#context.ts'
import { closeOpenSessions } from '#providers/engine/reconcile-payments.ts'
import { keptOf } from '#payments/balance.ts'
import { findPayment } from '#payments/store.ts'
import { AppError, found, invalidField } from '#shared/errors.ts'
import { englishMoney } from '#shared/money.ts'
import { integer } from '#shared/validate.ts'
import { effectOfCompletion, periodEndText } from '#transactions/effect-of-completion.ts'
import { findTransaction, type Transaction } from '#transactions/store.ts'
import { bookMoney, isAnotherMovement, movementOf, type MailMoney } from './book-money.ts'
import { requireWaitingMail, reviewedState } from './require-waiting-mail.ts'
import { endReviewsOfPayment, markBankMailMatched, type BankMail, type Review } from './store.ts'

/** More than any transfer, and small enough for exact sums. */
const MAX_AMOUNT = 1e13

const MatchBankMailInput = z.strictObject({
  id: integer(1),
  transactionId: integer(1),
  /** In whole dong: required if the mail's amount could not be read, and refused otherwise. */
  amount: integer(1, MAX_AMOUNT).optional(),
  note: noteField,
})

export type MatchTarget = Omit<z.infer<typeof MatchBankMailInput>, 'note'>

export interface MatchedMail {
  readonly status: 'processed' | 'underpaid' | 'already_completed'
  readonly transactionId: number
}

/** What a match would do, for the operator to confirm. */
export interface MatchPreview extends MatchedMail {
  readonly appId: number
  /** Sentences for the operator. */
  readonly effects: readonly string[]
}

/**
 * Matches a mail's money to a transaction for an operator (R197). The money is booked as if the mail had the transaction's code. Throws
 * `not_found`. Throws `invalid_request` if the mail does not wait, or if `amount` is missing or refused. Throws it too if the transaction
 * is not in VND or belongs to an app that never used the account.
 */
export async function matchBankMail(ctx: Context, caller: Caller, input: unknown): Promise<MatchedMail> {
  const { status, transactionId } = await perform(ctx, caller, match, input, null)
  if (status !== 'already_completed') await closeOpenSessions(ctx, transactionId)
  return { status, transactionId }
}

/** Runs `matchBankMail`, rolls it back, and returns what it would do. Throws the same errors. */
export async function previewMatch(ctx: Context, caller: Caller, input: MatchTarget): Promise<MatchPreview> {
  const rehearsed = rehearsing(ctx)
  const preview = await perform(rehearsed, caller, match, { ...input, note: 'a preview' }, null)
  return { ...preview, effects: [...preview.effects, ...rehearsedEvents(rehearsed.rehearsal)] }
}

const match = command({
  name: 'bank-mail.match',
  input: MatchBankMailInput,
  async run(tx, { note, ...target }): Promise<MatchPreview> {
    const { transactionId } = target
    const mail = await requireWaitingMail(tx, target.id)
    const payable = await requirePayable(tx, transactionId)
    // Waiting money belongs to no app yet: any app that has or had the account may have received it.
    const money = { ...mail, appId: null, paidAt: mail.receivedAt }
    await refuseForeignMoney(tx, money, payable)
    const endBefore = await periodEndText(tx, payable)
    const matched = await matchIn(tx, mail, { payable, amount: target.amount }, noteOf(tx, note))
    const { amount, transaction, status } = matched
    await tx.audit({
      appId: transaction.appId,
      subject: `bank mail ${mail.id}`,
      before: reviewedState(mail),
      after: { transaction_id: transactionId, outcome: status, amount },
      reason: note,
    })
    return { status, transactionId, appId: transaction.appId, effects: await effectsOf(tx, matched, endBefore) }
  },
})

interface Match {
  readonly mail: BankMail
  readonly amount: number
  /** As it is after the match. */
  readonly transaction: Transaction
  readonly status: MatchedMail['status']
}

async function matchIn(
  tx: Tx,
  mail: BankMail,
  target: { readonly payable: Transaction; readonly amount: number | undefined },
  operatorNote: OperatorNote,
): Promise<Match> {
  const amount = amountOf(mail, target.amount)
  const booked = await bookMoney(tx, await moneyOf(tx, mail, amount), target.payable.id, operatorNote)
  if (booked.kind === 'duplicate')
    throw new AppError('invalid_request', 'this money was booked before, from another mail or by payment move')
  const { transaction, paymentId, kind: status } = booked
  const changes = { transactionId: transaction.id, appId: transaction.appId, amount, paymentId }
  if (!(await markBankMailMatched(tx, mail.id, changes))) throw invalidField('id', 'was matched meanwhile')
  await endReviewsOfPayment(tx, paymentId)
  return { mail, amount, transaction, status }
}

function amountOf({ amount }: BankMail, given: number | undefined): number {
  if (amount !== null && given !== undefined)
    throw invalidField('amount', `is refused: the mail says ${englishMoney(amount, 'VND')}`)
  const known = amount ?? given
  if (known === undefined) throw invalidField('amount', 'is required: it could not be read from the mail')
  return known
}

async function effectsOf(
  tx: Tx,
  { mail, amount, transaction, status }: Match,
  endBefore: string,
): Promise<readonly string[]> {
  const { id, externalRef, amount: asked, currency } = transaction
  const booked = `${englishMoney(amount, currency)} from ${mail.bank ?? 'the bank'} is booked for transaction ${id} of ${externalRef}`
  const effects = [...warningsOf(mail), booked]
  switch (status) {
    case 'processed':
      return [...effects, 'the transaction completes', ...(await effectOfCompletion(tx, transaction, endBefore))]
    case 'underpaid':
      return [
        ...effects,
        `the transaction then has ${englishMoney(keptOf(transaction), currency)} of ${englishMoney(asked, currency)}: flagged underpaid`,
      ]
    case 'already_completed':
      return [...effects, `the transaction is ${transaction.status} already: flagged, because money arrived twice`]
  }
}

/** What an operator must verify first, since the mail does not prove it. */
function warningsOf({ review, amount }: BankMail): string[] {
  const doubt = review && REVIEW_WARNINGS[review]
  if (!doubt) return []
  const warning = `check the account's statement first: ${doubt}`
  return amount === null ? [warning, 'the mail does not prove the amount'] : [warning]
}

const REVIEW_WARNINGS: Readonly<Record<Review, string | null>> = {
  credit: null,
  not_understood: 'the mail was not understood',
  unknown_sender: 'the mail may quote anybody',
  unreadable: 'the mail may be from anybody',
}

async function requirePayable(tx: Tx, transactionId: number): Promise<Transaction> {
  const transaction = found(await findTransaction(tx, transactionId), 'transaction')
  if (transaction.currency !== 'VND') throw invalidField('transaction_id', 'is not in VND')
  return transaction
}

/** The money of the mail, paid when the mail came, with the reference under which it waits. */
async function moneyOf(tx: Tx, mail: BankMail, amount: number): Promise<MailMoney> {
  const { bankAccountId, receivedAt, paymentId } = mail
  const { bank, reference } = await movementOf(tx, mail)
  const waiting = paymentId === null ? null : await findPayment(tx, paymentId)
  const known = { bank, reference: waiting?.reference ?? reference }
  const messageIdHash = (await isAnotherMovement(tx, bank, mail)) ? null : mail.messageIdHash
  return { ...known, messageIdHash, bankAccountId, amount, paidAt: receivedAt }
}
