import type { Tx } from '#commands/transaction.ts'
import { retryable } from '#db/database-error.ts'
import { lockExistingEndUser } from '#subscriptions/store.ts'
import { findOwner, getTransaction, type Transaction } from './store.ts'

/**
 * Locks the end users of several transactions and reads the transactions under the locks. The order of the locks is fixed, so that two
 * callers cannot deadlock. Unknown transactions are left out.
 */
export async function lockTransactions(
  tx: Tx,
  transactionIds: readonly number[],
): Promise<ReadonlyMap<number, Transaction>> {
  const found: { readonly id: number; readonly appId: number; readonly externalRef: string }[] = []
  for (const id of new Set(transactionIds)) {
    const owner = await findOwner(tx, id)
    if (owner) found.push({ id, ...owner })
  }
  const owners = new Map(found.map(({ appId, externalRef }) => [`${appId} ${externalRef}`, { appId, externalRef }]))
  for (const [, { appId, externalRef }] of [...owners].sort(([a], [b]) => (a < b ? -1 : 1)))
    await lockExistingEndUser(tx, appId, externalRef)
  const transactions = new Map<number, Transaction>()
  for (const { id } of found) transactions.set(id, await getTransaction(tx, id))
  return transactions
}

/** The payment was moved after the locks were taken. Retries, so that the new transaction is locked too. */
export function movedMeanwhile(paymentId: number): Error {
  return retryable(`payment ${paymentId} was moved meanwhile`)
}
