import type { ToldApp } from '#apps/store.ts'
import type { Tx } from '#commands/transaction.ts'
import { arrived, keptOf } from '#payments/balance.ts'
import type { PaymentSubject } from '#subscriptions/decide-payment.ts'
import type { RealTime } from '#shared/time.ts'
import { changeTransaction } from './change-transaction.ts'
import { completeTransaction } from './complete-transaction.ts'
import type { ProviderCode, Transaction } from './store.ts'

/** Money that counts for a transaction from now on, whether it has just come or was moved here. */
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
 * What money does for the transaction that it was booked for: it completes a pending one once it is enough, and flags it as underpaid
 * before that; where there is nothing to be paid any more, it is left and flagged. `subject`: what it is decided on, where that was read.
 * A step, under the end user's lock.
 */
export async function receiveMoney(
  tx: Tx,
  app: ToldApp,
  transaction: Transaction,
  { provider, amount, paidAt }: ArrivedMoney,
  subject: PaymentSubject | null = null,
): Promise<Received> {
  const balance = arrived(transaction, amount)
  if (transaction.status !== 'pending') {
    const flagReason = transaction.flagReason ?? 'duplicate_payment'
    return {
      kind: 'already_completed',
      transaction: await changeTransaction(tx, app, transaction, { ...balance, flagReason }),
    }
  }
  if (keptOf(balance) < transaction.amount) {
    // Money that was dismissed counts again: more of it may still complete the payment.
    const changes = {
      ...balance,
      amountLeft: keptOf(balance),
      flagReason: 'underpaid',
      providerCode: provider,
    } as const
    return { kind: 'underpaid', transaction: await changeTransaction(tx, app, transaction, changes) }
  }
  const completion = { providerCode: provider, paidAt }
  return {
    kind: 'processed',
    transaction: await completeTransaction(tx, app, { ...transaction, ...balance }, completion, { subject }),
  }
}
