import type { Tx } from '#commands/transaction.ts'
import { insertAllocation, type AllocationCause } from '#payments/store.ts'
import type { Decision } from './change-transaction.ts'
import type { Transaction } from './store.ts'

export interface AllocatedPart {
  readonly paymentId: number
  /** Negative where the money no longer counts. */
  readonly amount: number
  readonly cause: AllocationCause
  /** The refund that takes it back. */
  readonly refundId?: number
  readonly decision: Decision | null
}

/** Records that money of a payment counts for a transaction, or no longer does. */
export async function allocate(
  tx: Tx,
  { id: transactionId, appId }: Pick<Transaction, 'id' | 'appId'>,
  { paymentId, amount, cause, refundId, decision }: AllocatedPart,
): Promise<void> {
  const { actor, note } = decision ?? { actor: null, note: null }
  await insertAllocation(tx, {
    appId,
    paymentId,
    transactionId,
    refundId: refundId ?? null,
    amount,
    cause,
    actor,
    note,
  })
}
