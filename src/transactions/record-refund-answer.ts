import { getApp, type App } from '#apps/store.ts'
import type { Tx } from '#commands/transaction.ts'
import type { Context } from '#context.ts'
import { keptOf, balanceAfterRefusedRefund, balanceAfterFailedRefund, unallocatedOf } from '#payments/balance.ts'
import { isRefused } from '#payments/refund-state.ts'
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
import type { RealTime } from '#shared/time.ts'
import { truncate } from '#shared/truncate.ts'
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
 * Records the provider's answer about a refund, which has one of three outcomes (R131). Refused, so that there is no reference: the money is
 * the transaction's again. Failed later: it belongs to no transaction and waits for an operator. Pending or made: the transaction stays as
 * the order of the refund left it. Returns the changed refund.
 */
export async function recordRefundAnswer(tx: Tx, refundId: number, answer: RefundAnswer): Promise<Refund> {
  const { refund: before, shares } = await lockRefundWithShares(tx, refundId)
  const after = refundAfter(before, answer, tx.now)
  if (!after) return before
  await saveRefund(tx, before, after)
  for (const share of shares) await applyToTransaction(tx, before, after, share)
  if (after.status === 'failed') await returnToPayment(tx, after, shares)
  tx.afterCommit(() => report(tx.ctx, after))
  return after
}

/** What a refund took from one transaction. */
interface Share {
  readonly transaction: Transaction
  readonly amount: number
}

async function lockRefundWithShares(
  tx: Tx,
  refundId: number,
): Promise<{ readonly refund: Refund; readonly shares: readonly Share[] }> {
  const taken = await listRefundedShares(tx, refundId)
  const transactions = await lockTransactions(
    tx,
    taken.map(({ transactionId }) => transactionId),
  )
  const refund = await lockRefund(tx, refundId)
  if (!refund) throw new AppError('not_found', `refund ${refundId} does not exist`)
  const shares = taken.map(({ transactionId, amount }) => {
    const transaction = transactions.get(transactionId)
    if (!transaction) throw new Error(`transaction ${transactionId} does not exist`)
    return { transaction, amount }
  })
  return { refund, shares }
}

/** The refund with the answer; null if the answer changes nothing. */
function refundAfter(before: Refund, answer: RefundAnswer, now: RealTime): Refund | null {
  if (before.status === 'failed') return null
  // The answer that the refund was accepted came later than the report that it was made.
  if (before.status === 'succeeded' && answer.status === 'pending') return null
  const reference = answer.reference ?? before.reference
  if (before.status === answer.status && before.reference === reference) return null
  const ending = answer.status === 'pending' ? {} : endedNow({ now }, answer.status)
  const failure = answer.failure && truncate(answer.failure, 191)
  return { ...before, status: answer.status, reference, failure, ...ending }
}

async function saveRefund(tx: Tx, before: Refund, after: Refund): Promise<void> {
  const { id, status, reference, failure, nextLookupAt, endedAt } = after
  const changes = { status, reference, failure, nextLookupAt, endedAt }
  if (!(await updateRefundIn(tx, id, [before.status], changes)))
    throw new Error(`refund ${id} was changed although it was locked`)
}

async function applyToTransaction(tx: Tx, before: Refund, after: Refund, share: Share): Promise<void> {
  const app = await getApp(tx, share.transaction.appId)
  if (isRefused(after)) return undoRefusedRefund(tx, app, after, share)
  if (after.status === 'failed') return dropFailedRefund(tx, app, after, share)
  const ended = await endIfDecided(tx, app, share.transaction, after)
  if (before.status !== after.status) await announceRefunds(tx, app, ended, [after.id])
}

/** `endIfRefunded`, unless the refund was made at the provider: that leaves the transaction as it is. */
async function endIfDecided(tx: Tx, app: App, transaction: Transaction, { actor, note }: Refund): Promise<Transaction> {
  return actor === null ? transaction : endIfRefunded(tx, app, transaction, { actor, note: note ?? '' })
}

/** The transaction gets its money and its flag back, and completes if the money is now enough. */
async function undoRefusedRefund(tx: Tx, app: App, refund: Refund, { transaction, amount }: Share): Promise<void> {
  const { id: refundId, paymentId, amountUsed } = refund
  await allocate(tx, transaction, { paymentId, amount, cause: 'refund_failed', refundId, operatorNote: null })
  const flagReason = flagAfterRefusal(transaction, refund)
  const isLeft = flagReason !== null || transaction.status === 'completed'
  const balance = balanceAfterRefusedRefund(transaction, amount, Math.min(amountUsed, amount), isLeft)
  if (transaction.status === 'pending' && keptOf(balance) >= transaction.amount) {
    const { provider: providerCode } = await lockKnownPayment(tx, paymentId)
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

/** The provider had accepted the refund before it failed: the money no longer belongs to the transaction. */
async function dropFailedRefund(
  tx: Tx,
  app: App,
  { id: refundId, paymentId }: Refund,
  { transaction, amount }: Share,
): Promise<void> {
  const cause = 'refund_failed'
  await allocate(tx, transaction, { paymentId, amount, cause, refundId, operatorNote: null })
  await allocate(tx, transaction, { paymentId, amount: -amount, cause, operatorNote: null })
  await changeTransaction(tx, app, transaction, balanceAfterFailedRefund(transaction, amount))
}

/** The money of a failed refund that returns to no transaction stays on its payment. */
async function returnToPayment(tx: Tx, refund: Refund, shares: readonly Share[]): Promise<void> {
  const payment = await lockKnownPayment(tx, refund.paymentId)
  const restored = isRefused(refund) ? shares.reduce((sum, { amount }) => sum + amount, 0) : 0
  const returned = refund.amount - restored
  if (returned === 0) return
  await updatePayment(tx, payment.id, { amountLeft: unallocatedOf(payment) + returned, closedAt: null })
}

async function lockKnownPayment(tx: Tx, paymentId: number): Promise<Payment> {
  const payment = await lockPayment(tx, paymentId)
  if (!payment) throw new Error(`payment ${paymentId} does not exist`)
  return payment
}

/** Logs the outcome of a refund, as a warning if operators must act. */
function report(ctx: Context, { id: refundId, paymentId, status, failure }: Refund): void {
  if (status === 'failed')
    ctx.log.warn({ refundId, paymentId, failure }, 'a refund failed: its money waits for an operator')
  else ctx.log.info({ refundId, paymentId, status }, 'a refund was recorded')
}
