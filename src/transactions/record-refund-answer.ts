import { getApp, type App } from '#apps/store.ts'
import type { Tx } from '#commands/transaction.ts'
import type { Context } from '#context.ts'
import { keptOf, notRefunded, refundFailed } from '#payments/balance.ts'
import {
  allocate,
  listRefundedShares,
  lockPayment,
  lockRefund,
  updatePayment,
  updateRefundIn,
  type Payment,
  type Refund,
  type RefundStatus,
} from '#payments/store.ts'
import { AppError } from '#shared/errors.ts'
import { announceRefunds } from './announce-refund.ts'
import { changeTransaction } from './change-transaction.ts'
import { completeTransaction } from './complete-transaction.ts'
import { lockTransactions } from './lock-transactions.ts'
import { endIfRefunded, endedNow } from './refund-steps.ts'
import { getTransactionRows, type FlagReason, type Transaction } from './store.ts'

/** The provider's answer about a refund. */
export interface RefundAnswer {
  readonly status: RefundStatus
  /** The provider's id of the refund; null if it refused to make one. */
  readonly reference: string | null
  /** Why it failed. */
  readonly failure: string | null
}

/**
 * Records the provider's answer about a refund. A refund that the provider refused to make has no effect. The money of one that failed
 * later belongs to no transaction and waits for an operator (R131). Returns the changed refund.
 */
export async function recordRefundAnswer(tx: Tx, refundId: number, answer: RefundAnswer): Promise<Refund> {
  const taken = await listRefundedShares(tx, refundId)
  const transactions = await lockTransactions(
    tx,
    taken.map(({ transactionId }) => transactionId),
  )
  const before = await lockRefund(tx, refundId)
  if (!before) throw new AppError('not_found', `refund ${refundId} does not exist`)
  const reference = answer.reference ?? before.reference
  if (before.status === 'failed' || (before.status === answer.status && before.reference === reference)) return before
  // The answer that the refund was accepted came later than the report that it was made.
  if (before.status === 'succeeded' && answer.status === 'pending') return before
  const ending = answer.status === 'pending' ? {} : endedNow(tx, answer.status)
  const changes = { status: answer.status, reference, failure: answer.failure?.slice(0, 191) ?? null, ...ending }
  if (!(await updateRefundIn(tx, refundId, [before.status], changes)))
    throw new Error(`refund ${refundId} was changed although it was locked`)
  const after: Refund = { ...before, ...changes }
  for (const { transactionId, amount } of taken) {
    const transaction = transactions.get(transactionId)
    if (!transaction) throw new Error(`transaction ${transactionId} does not exist`)
    const app = await getApp(tx, transaction.appId)
    if (after.status !== 'failed') {
      const ended = await endIfDecided(tx, app, transaction, after)
      if (before.status !== after.status) await announceRefunds(tx, app, ended, [after.id])
    } else if (after.reference === null) await restore(tx, app, transaction, after, amount)
    else await release(tx, app, transaction, after, amount)
  }
  if (after.status === 'failed') await returnToPayment(tx, after, taken)
  tx.afterCommit(() => report(tx.ctx, after))
  return after
}

/** Logs the outcome of a refund, as a warning if operators must act. */
function report(ctx: Context, { id: refundId, paymentId, status, failure }: Refund): void {
  if (status === 'failed')
    ctx.log.warn({ refundId, paymentId, failure }, 'a refund failed: its money waits for an operator')
  else ctx.log.info({ refundId, paymentId, status }, 'a refund was recorded')
}

/** `endIfRefunded`, unless the refund was made at the provider: that leaves the transaction as it is. */
async function endIfDecided(tx: Tx, app: App, transaction: Transaction, { actor, note }: Refund): Promise<Transaction> {
  return actor === null ? transaction : endIfRefunded(tx, app, transaction, { actor, note: note ?? '' })
}

/** The provider refused to make the refund: the transaction gets its money and its flag back, and completes if the money is now enough. */
async function restore(tx: Tx, app: App, transaction: Transaction, refund: Refund, amount: number): Promise<void> {
  const { id: refundId, paymentId, amountUsed } = refund
  await allocate(tx, transaction, { paymentId, amount, cause: 'refund_failed', refundId, operatorNote: null })
  const flagReason = flagAfterRefusal(transaction, refund)
  const isLeft = flagReason !== null || transaction.status === 'completed'
  const balance = notRefunded(transaction, amount, Math.min(amountUsed, amount), isLeft)
  if (transaction.status === 'pending' && keptOf(balance) >= transaction.amount) {
    const { provider: providerCode } = await getPayment(tx, paymentId)
    const rows = await getTransactionRows(tx, transaction.id)
    await completeTransaction(
      tx,
      { ...rows, transaction: { ...transaction, ...balance } },
      { providerCode, paidAt: tx.now },
    )
    return
  }
  const isUnused = transaction.status === 'completed' && flagReason === null && balance.amountUsed === 0
  const resolution = isUnused ? ({ resolution: 'dismissed' } as const) : { resolution: null, resolvedAt: null }
  await changeTransaction(tx, app, transaction, { ...balance, flagReason, ...resolution })
}

function flagAfterRefusal({ status, flagReason }: Transaction, refund: Refund): FlagReason | null {
  const cleared = refund.flagReason as FlagReason | null
  // A transaction that was completed in the meantime did not need this money.
  const restored = cleared === 'underpaid' && status !== 'pending' ? 'duplicate_payment' : cleared
  return flagReason ?? restored
}

/** The refund failed after the provider had accepted it: the money no longer belongs to the transaction. */
async function release(
  tx: Tx,
  app: App,
  transaction: Transaction,
  { id: refundId, paymentId }: Refund,
  amount: number,
): Promise<void> {
  const cause = 'refund_failed'
  await allocate(tx, transaction, { paymentId, amount, cause, refundId, operatorNote: null })
  await allocate(tx, transaction, { paymentId, amount: -amount, cause, operatorNote: null })
  await changeTransaction(tx, app, transaction, refundFailed(transaction, amount))
}

/** The money of a failed refund that returns to no transaction stays on its payment. */
async function returnToPayment(
  tx: Tx,
  { paymentId, amount, reference }: Refund,
  taken: readonly { readonly amount: number }[],
): Promise<void> {
  const payment = await getPayment(tx, paymentId)
  const restored = reference === null ? taken.reduce((sum, part) => sum + part.amount, 0) : 0
  const returned = amount - restored
  if (returned === 0) return
  await updatePayment(tx, paymentId, { amountLeft: (payment.amountLeft ?? 0) + returned, closedAt: null })
}

async function getPayment(tx: Tx, paymentId: number): Promise<Payment> {
  const payment = await lockPayment(tx, paymentId)
  if (!payment) throw new Error(`payment ${paymentId} does not exist`)
  return payment
}
