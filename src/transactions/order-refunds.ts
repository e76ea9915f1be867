import { appNow } from '#apps/app-time.ts'
import type { App } from '#apps/store.ts'
import type { OperatorNote } from '#commands/operator-note.ts'
import type { Tx } from '#commands/transaction.ts'
import { balanceOf, keptOf, balanceAfterRefund, takeNewest, unallocatedOf, type Balance } from '#payments/balance.ts'
import { allocate, insertRefund, listPaymentsOf, updatePayment, type Payment, type Refund } from '#payments/store.ts'
import { invalidField } from '#shared/errors.ts'
import { englishMoney } from '#shared/money.ts'
import { announceRefunds } from './announce-refund.ts'
import { changeTransaction } from './change-transaction.ts'
import { endIfRefunded, endedNow, newRefund, pendingNow, type RefundState } from './refund-steps.ts'
import type { FlagReason, Transaction } from './store.ts'

/** Who gives the money of a payment back: its provider, an operator by a transfer, or nobody, because no money moved. */
export type RefundWay = 'provider' | 'transfer' | 'none'

export interface RefundOrder {
  /** At most what the transaction keeps. */
  readonly amount: number
  readonly wayOf: (provider: string) => RefundWay
  /** The reference of the operator's transfer. */
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
 * `pending`, and the caller sends them after the commit; the others have succeeded. A step, under the end user's lock. Throws
 * `invalid_request` on `reference` if that of a transfer is missing or was recorded before.
 */
export async function orderRefunds(
  tx: Tx,
  app: App,
  transaction: Transaction,
  order: RefundOrder,
): Promise<{ readonly transaction: Transaction; readonly ordered: readonly OrderedRefund[] }> {
  const { operatorNote } = order
  const { ordered, balance, flagReason } = await addRefunds(tx, transaction, order)
  const changes = { ...balance, flagReason, ...resolutionOf(tx, app, transaction, balance) }
  const current = await changeTransaction(tx, app, transaction, changes, operatorNote)
  const ended = await endIfRefunded(tx, app, current, operatorNote)
  const succeeded = ordered.filter(({ refund }) => refund.status === 'succeeded').map(({ refund }) => refund.id)
  await announceRefunds(tx, app, ended, succeeded)
  return { transaction: ended, ordered }
}

/** Adds one refund for each payment, and takes its money from the transaction. Returns what the transaction then has. */
async function addRefunds(
  tx: Tx,
  transaction: Transaction,
  { amount, wayOf, reference, operatorNote }: RefundOrder,
): Promise<{ readonly ordered: OrderedRefund[]; readonly balance: Balance; readonly flagReason: FlagReason | null }> {
  const parts = takeNewest(amount, await listPaymentsOf(tx, transaction.id))
  for (const { part } of parts) requireReference(wayOf(part.provider), reference)
  let balance = balanceOf(transaction)
  let { flagReason } = transaction
  const ordered: OrderedRefund[] = []
  for (const { part: payment, amount: share } of parts) {
    const after = balanceAfterRefund(balance, share)
    const clearsFlag = flagReason !== null && after.amountLeft === 0
    const refund = await insertRefundOnce(tx, {
      ...newRefund(tx, { appId: transaction.appId, paymentId: payment.id, amount: share }),
      ...stateOf(tx, wayOf(payment.provider), reference),
      amountUsed: balance.amountUsed - after.amountUsed,
      flagReason: clearsFlag ? flagReason : null,
      ...operatorNote,
    })
    const { id: refundId } = refund
    await allocate(tx, transaction, { paymentId: payment.id, amount: -share, cause: 'refund', refundId, operatorNote })
    ordered.push({ refund, payment })
    balance = after
    if (clearsFlag) flagReason = null
  }
  return { ordered, balance, flagReason }
}

/** A refund resolves a transaction once nothing waits any more. */
function resolutionOf(tx: Tx, app: App, before: Transaction, after: Balance): Partial<Transaction> {
  const isResolved = after.amountLeft === 0 && (before.amountLeft > 0 || keptOf(after) === 0)
  return isResolved ? { resolution: 'refunded', resolvedAt: appNow(app, tx.now) } : {}
}

/** Adds the refund of money that is not allocated. A step; throws as `orderRefunds`, and on `amount` beyond what is left. */
export async function orderRefundOfPayment(
  tx: Tx,
  payment: Payment,
  { amount, wayOf, reference, operatorNote }: RefundOrder,
): Promise<Refund> {
  const free = unallocatedOf(payment)
  if (amount > free) throw invalidField('amount', `exceeds the ${englishMoney(free, payment.currency)} that is left`)
  const way = wayOf(payment.provider)
  requireReference(way, reference)
  const refund = await insertRefundOnce(tx, {
    ...newRefund(tx, { appId: payment.appId, paymentId: payment.id, amount }),
    ...stateOf(tx, way, reference),
    ...operatorNote,
  })
  await updatePayment(tx, payment.id, { amountLeft: free - amount, closedAt: null })
  return refund
}

function requireReference(way: RefundWay, reference: string | null): void {
  if (way === 'transfer' && !reference)
    throw invalidField('reference', 'is required for a manual refund: the reference of your transfer')
}

function stateOf(tx: Tx, way: RefundWay, reference: string | null): RefundState {
  return way === 'provider' ? pendingNow(tx) : { ...endedNow(tx, 'succeeded'), reference }
}

async function insertRefundOnce(tx: Tx, row: Omit<Refund, 'id'>): Promise<Refund> {
  const refundId = await insertRefund(tx, row)
  if (refundId === null)
    throw invalidField('reference', `${row.reference ?? ''} is the reference of an earlier refund of the same payment`)
  return { ...row, id: refundId }
}
