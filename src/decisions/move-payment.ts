import { z } from 'zod'
import { getApp } from '#apps/store.ts'
import { refuseForeignMoney } from '#bank-accounts/refuse-foreign-money.ts'
import { endReviewsOfPayment } from '#bank-mail/store.ts'
import type { Caller } from '#commands/caller.ts'
import { command, type CommandTx } from '#commands/command.ts'
import { noteField, noteOf, type OperatorNote } from '#commands/operator-note.ts'
import { perform } from '#commands/perform.ts'
import type { Context } from '#context.ts'
import { movableOf, balanceAfterMove, takeNewest, unallocatedOf } from '#payments/balance.ts'
import { presentPayment } from '#payments/present.ts'
import { allocate, listKeptOfPayment, lockPayment, updatePayment, type Payment } from '#payments/store.ts'
import { closeOpenSessions } from '#providers/engine/reconcile-payments.ts'
import { AppError, found, invalidField } from '#shared/errors.ts'
import { englishMoney } from '#shared/money.ts'
import { integer } from '#shared/validate.ts'
import { saveReducedBalance } from '#transactions/change-transaction.ts'
import { lockTransactions, movedMeanwhile } from '#transactions/lock-transactions.ts'
import { receiveMoney, type Received } from '#transactions/complete-transaction.ts'
import { getTransactionRows, type Transaction } from '#transactions/store.ts'

const MovePaymentInput = z.strictObject({
  payment_id: integer(1),
  transaction_id: integer(1),
  /** In the smallest unit; required if the payment's amount is unknown. Absent: all that may be moved. */
  amount: integer(1).optional(),
  note: noteField,
})
type MovePaymentInput = z.infer<typeof MovePaymentInput>

export interface MovedPayment {
  readonly payment_id: number
  readonly transaction_id: number
  readonly amount: number
  /** What the money did to that transaction. */
  readonly status: Received['kind']
}

/** A part of a payment that may be moved, and where it is booked. */
interface Source {
  readonly transaction: Transaction
  readonly kept: number
}

/**
 * Books money for the transaction that it was meant for (R136): money that is unallocated, or that a transaction has without having
 * used it. It counts there from when it was paid. Throws `not_found`, and `invalid_request` if nothing may be moved.
 */
export async function movePayment(ctx: Context, caller: Caller, input: unknown): Promise<MovedPayment> {
  const moved = await perform(ctx, caller, move, input, null)
  if (moved.status !== 'already_completed') await closeOpenSessions(ctx, moved.transaction_id)
  return moved
}

const move = command({
  name: 'payment.move',
  input: MovePaymentInput,
  async run(tx, input): Promise<MovedPayment> {
    const { payment_id: paymentId, transaction_id: transactionId, note } = input
    const bookedBefore = (await listKeptOfPayment(tx, paymentId)).map((part) => part.transactionId)
    const transactions = await lockTransactions(tx, [...bookedBefore, transactionId])
    const payment = found(await lockPayment(tx, paymentId), `payment ${paymentId}`)
    const target = found(transactions.get(transactionId), `transaction ${transactionId}`)
    if (payment.currency !== target.currency)
      throw invalidField('transaction_id', `is in ${target.currency}, and the payment in ${payment.currency}`)
    await refuseForeignMoney(tx, payment, target)
    const booked = await listKeptOfPayment(tx, paymentId)
    const sources = sourcesOf(payment, booked, target, transactions)
    const free = freeOf(payment, input)
    const amount = amountOf(free, sources, { ...input, currency: payment.currency })
    const operatorNote = noteOf(tx, note)
    const fromFree = Math.min(free, amount)
    for (const { part, amount: share } of takeNewest(amount - fromFree, sources))
      await deallocate(tx, part.transaction, { paymentId, amount: share, operatorNote })
    const cause = amount > free ? 'moved' : 'matched'
    await allocate(tx, target, { paymentId, amount, cause, operatorNote })
    await updatePayment(tx, paymentId, {
      appId: target.appId,
      endUserId: target.endUserId,
      amount: payment.amount ?? amount,
      amountLeft: free - fromFree,
      closedAt: null,
    })
    await endReviewsOfPayment(tx, paymentId)
    const money = { provider: payment.provider, amount, paidAt: payment.paidAt }
    const received = await receiveMoney(tx, await getTransactionRows(tx, target.id), money)
    await tx.audit({
      appId: target.appId,
      subject: `payment ${paymentId}`,
      before: { ...presentPayment(payment), transaction_ids: booked.map((part) => part.transactionId) },
      after: { transaction_id: transactionId, amount, outcome: received.kind },
      reason: note,
    })
    return { payment_id: paymentId, transaction_id: transactionId, amount, status: received.kind }
  },
})

function sourcesOf(
  payment: Payment,
  booked: readonly { readonly transactionId: number; readonly kept: number }[],
  target: Transaction,
  transactions: ReadonlyMap<number, Transaction>,
): Source[] {
  return booked.flatMap(({ transactionId, kept }) => {
    const transaction = transactions.get(transactionId)
    if (!transaction) throw movedMeanwhile(payment.id)
    return transactionId === target.id ? [] : [{ transaction, kept: Math.min(kept, movableOf(transaction)) }]
  })
}

/** The unallocated amount; if it is unknown, what the operator states. */
function freeOf(payment: Payment, input: MovePaymentInput): number {
  if (payment.amount !== null) return unallocatedOf(payment)
  if (input.amount === undefined) throw invalidField('amount', 'is required: the amount of this payment is unknown')
  return input.amount
}

function amountOf(
  free: number,
  sources: readonly Source[],
  { currency, ...input }: MovePaymentInput & Pick<Payment, 'currency'>,
): number {
  const most = sources.reduce((sum, { kept }) => sum + kept, free)
  if (most === 0) {
    const used = sources.map(({ transaction }) => transaction.id).join(', ')
    const where =
      used === '' ? 'it is booked for this transaction already, or was refunded' : `it paid for transaction ${used}`
    throw new AppError('invalid_request', `nothing of payment ${input.payment_id} may be moved: ${where}`)
  }
  if (input.amount !== undefined && input.amount > most)
    throw invalidField('amount', `exceeds the ${englishMoney(most, currency)} that may be moved`)
  return input.amount ?? most
}

async function deallocate(
  tx: CommandTx,
  source: Transaction,
  {
    paymentId,
    amount,
    operatorNote,
  }: { readonly paymentId: number; readonly amount: number; readonly operatorNote: OperatorNote },
): Promise<void> {
  await allocate(tx, source, { paymentId, amount: -amount, cause: 'moved', operatorNote })
  const app = await getApp(tx, source.appId)
  await saveReducedBalance(tx, app, source, balanceAfterMove(source, amount), 'moved', operatorNote)
}
