import type { Tx } from '#commands/transaction.ts'
import { bigint, dueTime, exact, realTime } from '#db/columns.ts'
import type { Queries } from '#db/queries.ts'
import { table, type Row } from '#db/table.ts'
import { mailColumns } from '#mail/mail-columns.ts'
import type { RealTime } from '#shared/time.ts'

/** The subject of a mail to the payer: all of the money arrived, a part arrived, or some was refunded. */
export type ReceiptKind = 'received' | 'part' | 'refunded'

/** A mail about money, added with the change that it reports. */
export const receipts = table('receipts', {
  ...mailColumns,
  retryAt: dueTime('next_try_at'),
  transactionId: bigint('transaction_id'),
  kind: exact('kind', 16).as<ReceiptKind>(),
  /** The amount that arrived, or was to be refunded, in the transaction's currency. */
  amount: bigint('amount'),
  /** The total that had arrived by then. For a refund, the total that was ever to be refunded, including failed refunds. */
  total: bigint('total'),
  createdAt: realTime('created_at'),
})
export type Receipt = Row<typeof receipts>

export async function insertReceipt(tx: Tx, row: Omit<Receipt, 'id'>): Promise<void> {
  await tx.insert(receipts, row)
}

/** The receipts of some transactions, newest first. */
export async function listReceiptsOf(db: Queries, transactionIds: readonly number[]): Promise<Receipt[]> {
  return transactionIds.length === 0
    ? []
    : db.all(receipts, 'WHERE transaction_id IN (?) ORDER BY id DESC', [transactionIds])
}

/** Removes up to `limit` receipts that were sent or dropped before `before`; returns how many. */
export async function deleteOldReceipts(tx: Tx, before: RealTime, limit: number): Promise<number> {
  return tx.run(
    `DELETE FROM receipts WHERE status IN ('sent', 'dropped') AND next_try_at < ? ORDER BY status, next_try_at LIMIT ?`,
    [before, limit],
  )
}
