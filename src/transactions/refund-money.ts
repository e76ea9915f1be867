import { appNow } from '#apps/app-time.ts'
import { getApp, type App } from '#apps/store.ts'
import type { OperatorNote } from '#commands/operator-note.ts'
import type { Tx } from '#commands/transaction.ts'
import type { Context } from '#context.ts'
import { balanceOf, keptOf, notRefunded, refundFailed, refunded, takeNewest, type Balance } from '#payments/balance.ts'
import {
  allocate,
  findRefund,
  insertRefund,
  listKeptOfPayment,
  listPaymentsOf,
  listRefundsOfTransaction,
  listRefundedShares,
  lockPayment,
  updatePayment,
  updateRefundIn,
  type Payment,
  type Refund,
  type RefundStatus,
} from '#payments/store.ts'
import { AppError, invalidField } from '#shared/errors.ts'
import { addMs, MINUTE_MS } from '#shared/time.ts'
import { announceRefunds } from './announce-refund.ts'
import { changeTransaction } from './change-transaction.ts'
import { completeTransaction } from './complete-transaction.ts'
import { lockTransactions } from './lock-transactions.ts'
import { getTransactionRows, type FlagReason, type Transaction } from './store.ts'

/** The first look-up of a refund comes this soon; the gaps grow after it. */
const FIRST_LOOKUP_MS = 5 * MINUTE_MS

export interface RefundOrder {
  /** At most what the transaction keeps. */
  readonly amount: number
  /** Whether this provider makes refunds; otherwise the refund is a manual transfer. */
  readonly isSent: (provider: string) => boolean
  /** The reference of that transfer. */
  readonly reference: string | null
  readonly operatorNote: OperatorNote
}

/** A refund and its payment. */
export interface OrderedRefund {
  readonly refund: Refund
  readonly payment: Payment
}

/**
 * Adds the refunds of a part of a transaction's money, one for each payment, the newest payment first. Those that a provider makes are
 * `pending`, and the caller sends them after the commit; transfers have succeeded. A step, under the end user's lock. Throws
 * `invalid_request` on `reference` if it is missing or was recorded before.
 */
export async function orderRefunds(
  tx: Tx,
  app: App,
  transaction: Transaction,
  { amount, isSent, reference, operatorNote }: RefundOrder,
): Promise<{ readonly transaction: Transaction; readonly ordered: readonly OrderedRefund[] }> {
  const parts = takeNewest(amount, await listPaymentsOf(tx, transaction.id))
  if (parts.some(({ part }) => !isSent(part.provider)) && !reference)
    throw invalidField('reference', 'is required for a manual refund: the reference of your transfer')
  let balance = balanceOf(transaction)
  let { flagReason } = transaction
  const ordered: OrderedRefund[] = []
  for (const { part: payment, amount: share } of parts) {
    const after = refunded(balance, share)
    const clearsFlag = flagReason !== null && after.amountLeft === 0
    const refund = await insertRefundOnce(tx, {
      appId: app.id,
      paymentId: payment.id,
      amount: share,
      ...(isSent(payment.provider) ? pendingFrom(tx) : { ...endedAt(tx, 'succeeded'), reference }),
      failure: null,
      amountUsed: balance.amountUsed - after.amountUsed,
      flagReason: clearsFlag ? flagReason : null,
      ...operatorNote,
      attempts: 0,
      createdAt: tx.now,
    })
    const { id: refundId } = refund
    await allocate(tx, transaction, { paymentId: payment.id, amount: -share, cause: 'refund', refundId, operatorNote })
    ordered.push({ refund, payment })
    balance = after
    if (clearsFlag) flagReason = null
  }
  const current = await changeTransaction(
    tx,
    app,
    transaction,
    { ...balance, flagReason, ...resolutionOf(tx, app, transaction, balance) },
    operatorNote,
  )
  const ended = await endIfRefunded(tx, app, current, operatorNote)
  const succeeded = ordered.filter(({ refund }) => refund.status === 'succeeded')
  await announceRefunds(
    tx,
    app,
    ended,
    succeeded.map(({ refund }) => refund.id),
  )
  return { transaction: ended, ordered }
}

/** A refund resolves a transaction once nothing waits any more. */
function resolutionOf(tx: Tx, app: App, before: Transaction, after: Balance): Partial<Transaction> {
  const isResolved = after.amountLeft === 0 && (before.amountLeft > 0 || keptOf(after) === 0)
  return isResolved ? { resolution: 'refunded', resolvedAt: appNow(app, tx.now) } : {}
}

function pendingFrom(tx: Tx): Pick<Refund, 'status' | 'reference' | 'nextLookupAt' | 'endedAt'> {
  return { status: 'pending', reference: null, nextLookupAt: addMs(tx.now, FIRST_LOOKUP_MS), endedAt: null }
}

function endedAt(tx: Tx, status: 'succeeded' | 'failed'): Pick<Refund, 'status' | 'nextLookupAt' | 'endedAt'> {
  return { status, nextLookupAt: null, endedAt: tx.now }
}

async function insertRefundOnce(tx: Tx, row: Omit<Refund, 'id'>): Promise<Refund> {
  const refundId = await insertRefund(tx, row)
  if (refundId === null)
    throw invalidField('reference', `${row.reference ?? ''} is the reference of an earlier refund of the same payment`)
  return { ...row, id: refundId }
}

/** Ends a transaction as refunded once nothing of it is kept and every refund has succeeded. */
async function endIfRefunded(
  tx: Tx,
  app: App,
  transaction: Transaction,
  operatorNote: OperatorNote,
): Promise<Transaction> {
  if (keptOf(transaction) !== 0 || transaction.status === 'refunded') return transaction
  const made = await listRefundsOfTransaction(tx, transaction.id)
  if (made.length === 0 || made.some(({ status }) => status === 'pending')) return transaction
  return changeTransaction(tx, app, transaction, { status: 'refunded' }, operatorNote)
}

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
  const before = await findRefund(tx, refundId)
  if (!before) throw new AppError('not_found', `refund ${refundId} does not exist`)
  const reference = answer.reference ?? before.reference
  if (before.status === 'failed' || (before.status === answer.status && before.reference === reference)) return before
  const ending = answer.status === 'pending' ? {} : endedAt(tx, answer.status)
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

/** A refund that was made at the provider. */
export interface ForeignRefund {
  readonly reference: string
  readonly amount: number
  readonly status: RefundStatus
}

/**
 * Records a refund that was made at the provider. It takes first what is not allocated, then what the newest transaction keeps. The
 * transactions keep their status; a flag is cleared if its money is gone. Returns null if the refund is known, or nothing is kept of the
 * payment. The recorded amount is less than `amount` if less is kept.
 */
export async function recordForeignRefund(
  tx: Tx,
  paymentId: number,
  { reference, amount, status }: ForeignRefund,
): Promise<Refund | null> {
  const booked = await listKeptOfPayment(tx, paymentId)
  const transactions = await lockTransactions(
    tx,
    booked.map(({ transactionId }) => transactionId),
  )
  const payment = await lockPayment(tx, paymentId)
  if (!payment) return null
  const kept = await listKeptOfPayment(tx, paymentId)
  const free = payment.amountLeft ?? 0
  const most = free + kept.reduce((sum, part) => sum + part.kept, 0)
  const recorded = Math.min(amount, most)
  if (recorded === 0) return null
  const fromFree = Math.min(free, recorded)
  const parts = takeNewest(recorded - fromFree, kept)
  const plan = parts.map(({ part, amount: share }) => {
    const transaction = transactions.get(part.transactionId)
    if (!transaction) throw new Error(`payment ${paymentId} was moved meanwhile`)
    return { transaction, share, balance: refunded(transaction, share) }
  })
  const row = {
    appId: payment.appId,
    paymentId,
    amount: recorded,
    failure: null,
    amountUsed: plan.reduce((sum, { transaction, balance }) => sum + transaction.amountUsed - balance.amountUsed, 0),
    flagReason: null,
    actor: null,
    note: null,
    attempts: 0,
    createdAt: tx.now,
    ...(status === 'pending' ? { ...pendingFrom(tx), reference } : { ...endedAt(tx, status), reference }),
  }
  const refundId = await insertRefund(tx, row)
  if (refundId === null) return null
  for (const { transaction, share, balance } of plan) {
    const part = { paymentId, amount: -share, cause: 'refund', refundId, operatorNote: null } as const
    await allocate(tx, transaction, part)
    const app = await getApp(tx, transaction.appId)
    const cleared = { flagReason: null, resolution: 'refunded', resolvedAt: appNow(app, tx.now) } as const
    const isCleared = transaction.flagReason !== null && balance.amountLeft === 0
    const changed = await changeTransaction(tx, app, transaction, { ...balance, ...(isCleared ? cleared : {}) })
    if (status === 'succeeded') await announceRefunds(tx, app, changed, [refundId])
  }
  if (fromFree > 0) await updatePayment(tx, paymentId, { amountLeft: free - fromFree })
  return { ...row, id: refundId }
}

/** Adds the refund of money that is not allocated. A step; throws as `orderRefunds`, and on `amount` beyond what is left. */
export async function orderRefundOfPayment(
  tx: Tx,
  payment: Payment,
  { amount, isSent, reference, operatorNote }: RefundOrder,
): Promise<Refund> {
  const free = payment.amountLeft ?? 0
  if (amount > free) throw invalidField('amount', `is more than the ${free} ${payment.currency} that are left`)
  const isByProvider = isSent(payment.provider)
  if (!isByProvider && !reference)
    throw invalidField('reference', 'is required for a manual refund: the reference of your transfer')
  const refund = await insertRefundOnce(tx, {
    appId: payment.appId,
    paymentId: payment.id,
    amount,
    ...(isByProvider ? pendingFrom(tx) : { ...endedAt(tx, 'succeeded'), reference }),
    failure: null,
    amountUsed: 0,
    flagReason: null,
    ...operatorNote,
    attempts: 0,
    createdAt: tx.now,
  })
  await updatePayment(tx, payment.id, { amountLeft: free - amount, closedAt: null })
  return refund
}
