import type { Tx } from '#commands/transaction.ts'
import { arrived, keptOf } from '#payments/balance.ts'
import type { RealTime } from '#shared/time.ts'
import { changeTransaction } from './change-transaction.ts'
import { completeTransaction } from './complete-transaction.ts'
import type { ProviderCode, Sale, Transaction } from './store.ts'

/** Money that counts for a transaction from now on, whether it has just arrived or was moved here. */
export interface ArrivedMoney {
  readonly provider: ProviderCode
  /** In the smallest unit of the transaction's currency. */
  readonly amount: number
  readonly paidAt: RealTime
}

export interface Received {
  readonly kind: 'processed' | 'underpaid' | 'already_completed'
  readonly transaction: Transaction
}

/**
 * Counts money for the transaction that it was booked for: completes a pending transaction if it is enough, and flags it as underpaid
 * otherwise; where nothing is due any more, flags the money as a duplicate. A step, under the end user's lock.
 */
export async function receiveMoney(tx: Tx, sale: Sale, { provider, amount, paidAt }: ArrivedMoney): Promise<Received> {
  const { app, transaction } = sale
  const balance = arrived(transaction, amount)
  if (transaction.status !== 'pending') {
    const flagReason = transaction.flagReason ?? 'duplicate_payment'
    return {
      kind: 'already_completed',
      transaction: await changeTransaction(tx, app, transaction, { ...balance, flagReason }),
    }
  }
  if (keptOf(balance) < transaction.amount) {
    // Dismissed money counts again: together with this it may complete the payment.
    const changes = {
      ...balance,
      amountLeft: keptOf(balance),
      flagReason: 'underpaid',
      providerCode: provider,
    } as const
    return { kind: 'underpaid', transaction: await changeTransaction(tx, app, transaction, changes) }
  }
  const paid = { ...sale, transaction: { ...transaction, ...balance } }
  return { kind: 'processed', transaction: await completeTransaction(tx, paid, { providerCode: provider, paidAt }) }
}
