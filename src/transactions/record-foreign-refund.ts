import { getApp } from '#apps/store.ts'
import type { Tx } from '#commands/transaction.ts'
import { refunded, takeNewest } from '#payments/balance.ts'
import {
  allocate,
  insertRefund,
  listKeptOfPayment,
  lockPayment,
  updatePayment,
  type Refund,
  type RefundStatus,
} from '#payments/store.ts'
import { announceRefunds } from './announce-refund.ts'
import { takeMoney } from './change-transaction.ts'
import { lockTransactions, movedMeanwhile } from './lock-transactions.ts'
import { endedNow, newRefund, pendingNow } from './refund-steps.ts'

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
  const booked = await listKeptOfPayment(tx, paymentId)
  const transactions = await lockTransactions(
    tx,
    booked.map(({ transactionId }) => transactionId),
  )
  const payment = await lockPayment(tx, paymentId)
  if (!payment) return null
  const kept = await listKeptOfPayment(tx, paymentId)
  const free = payment.amountLeft ?? 0
  if (amount > free + kept.reduce((sum, part) => sum + part.kept, 0)) return null
  const fromFree = Math.min(free, amount)
  const parts = takeNewest(amount - fromFree, kept)
  const plan = parts.map(({ part, amount: share }) => {
    const transaction = transactions.get(part.transactionId)
    if (!transaction) throw movedMeanwhile(paymentId)
    return { transaction, share, balance: refunded(transaction, share) }
  })
  const row = {
    ...newRefund(tx, { appId: payment.appId, paymentId, amount }),
    ...(status === 'pending' ? pendingNow(tx) : endedNow(tx, status)),
    reference,
    amountUsed: plan.reduce((sum, { transaction, balance }) => sum + transaction.amountUsed - balance.amountUsed, 0),
  }
  const refundId = await insertRefund(tx, row)
  if (refundId === null) return null
  for (const { transaction, share, balance } of plan) {
    const part = { paymentId, amount: -share, cause: 'refund', refundId, operatorNote: null } as const
    await allocate(tx, transaction, part)
    const app = await getApp(tx, transaction.appId)
    const changed = await takeMoney(tx, app, transaction, balance, 'refunded')
    if (status === 'succeeded') await announceRefunds(tx, app, changed, [refundId])
  }
  if (fromFree > 0) await updatePayment(tx, paymentId, { amountLeft: free - fromFree })
  return { ...row, id: refundId }
}
