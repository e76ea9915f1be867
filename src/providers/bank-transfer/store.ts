import { insertedNew } from '#db/database-error.ts'
import type { Tx } from '#commands/transaction.ts'
import { transactions } from '#transactions/store.ts'

/** Gives a pending transaction its transfer code, unless it has one; returns false if another transaction has this code. */
export async function assignTransferCode(tx: Tx, transactionId: number, transferCode: string): Promise<boolean> {
  const codeless = { id: transactionId, status: 'pending' as const, transferCode: null }
  return insertedNew('transactions_transfer_code', tx.update(transactions, codeless, { transferCode }))
}
