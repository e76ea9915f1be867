import { getApp } from '#apps/store.ts'
import type { Tx } from '#commands/transaction.ts'
import { balanceAfterRefund, takeNewest, unallocatedOf, type Balance } from '#payments/balance.ts'
import {
  allocate,
  insertRefund,
  listKeptOfPayment,
  lockPayment,
  updatePayment,
  type Payment,
  type Refund,
  type RefundStatus,
} from '#payments/store.ts'
import { announceRefunds } from './announce-refund.ts'
import { saveReducedBalance } from './change-transaction.ts'
import { lockTransactions, movedMeanwhile } from './lock-transactions.ts'
import { endedNow, newRefund, pendingNow } from './refund-steps.ts'
import type { Transaction } from './store.ts'

/** A refund that was made at the provider. */
export interface ForeignRefund {
  readonly reference: string
  readonly amount: number
  readonly status: RefundStatus
}

/**
 * Records a refund that was made at the provider. It takes first what is not allocated, then what the newest transaction keeps. The
 * transactions keep their status; a flag is cleared if its money is gone. Returns null if the refund is known, or less than its amount is
 * kept of the payment: then another refund of it failed or was never made, which is not known yet. The next listing records both.
 */
export async function recordForeignRefund(
  tx: Tx,
  paymentId: number,
  { reference, amount, status }: ForeignRefund,
): Promise<Refund | null> {
  const transactions = await lockTransactionsOf(tx, paymentId)
  const payment = await lockPayment(tx, paymentId)
  if (!payment) return null
  const plan = planRefund(payment, amount, await listKeptOfPayment(tx, paymentId), transactions)
  if (!plan) return null
  const { fromFree, shares } = plan
  const row = {
    ...newRefund(tx, { appId: payment.appId, paymentId, amount }),
    ...(status === 'pending' ? pendingNow(tx) : endedNow(tx, status)),
    reference,
    amountUsed: shares.reduce((sum, { transaction, balance }) => sum + transaction.amountUsed - balance.amountUsed, 0),
  }
  const refundId = await insertRefund(tx, row)
  if (refundId === null) return null
  const refund = { ...row, id: refundId }
  for (const share of shares) await takeFromTransaction(tx, refund, share)
  if (fromFree > 0) await updatePayment(tx, paymentId, { amountLeft: unallocatedOf(payment) - fromFree })
  return refund
}

async function lockTransactionsOf(tx: Tx, paymentId: number): Promise<ReadonlyMap<number, Transaction>> {
  const booked = await listKeptOfPayment(tx, paymentId)
  return lockTransactions(
    tx,
    booked.map(({ transactionId }) => transactionId),
  )
}

interface RefundPlan {
  /** What it takes of the money that is not allocated. */
  readonly fromFree: number
  readonly shares: readonly Share[]
}

/** What it takes from one transaction, and the balance after it. */
interface Share {
  readonly transaction: Transaction
  readonly amount: number
  readonly balance: Balance
}

/** Null if less than `amount` is kept of the payment. */
function planRefund(
  payment: Payment,
  amount: number,
  kept: readonly { readonly transactionId: number; readonly kept: number }[],
  transactions: ReadonlyMap<number, Transaction>,
): RefundPlan | null {
  const free = unallocatedOf(payment)
  if (amount > free + kept.reduce((sum, part) => sum + part.kept, 0)) return null
  const fromFree = Math.min(free, amount)
  const shares = takeNewest(amount - fromFree, kept).map(({ part, amount: share }) => {
    const transaction = transactions.get(part.transactionId)
    if (!transaction) throw movedMeanwhile(payment.id)
    return { transaction, amount: share, balance: balanceAfterRefund(transaction, share) }
  })
  return { fromFree, shares }
}

async function takeFromTransaction(tx: Tx, refund: Refund, { transaction, amount, balance }: Share): Promise<void> {
  const { id: refundId, paymentId, status } = refund
  await allocate(tx, transaction, { paymentId, amount: -amount, cause: 'refund', refundId, operatorNote: null })
  const app = await getApp(tx, transaction.appId)
  const changed = await saveReducedBalance(tx, app, transaction, balance, 'refunded')
  if (status === 'succeeded') await announceRefunds(tx, app, changed, [refundId])
}
