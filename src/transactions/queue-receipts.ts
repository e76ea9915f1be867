import type { NotifiedApp } from '#apps/store.ts'
import type { Tx } from '#commands/transaction.ts'
import { keptOf } from '#payments/balance.ts'
import { insertReceipt, type ReceiptKind, type Transaction } from './store.ts'

/** Adds the mails about a change of a transaction, in the same database transaction, where the app wants receipts. */
export async function queueReceipts(tx: Tx, app: NotifiedApp, before: Transaction, after: Transaction): Promise<void> {
  if (!app.pageSettings?.receipts) return
  for (const { kind, amount, total } of receiptsOf(before, after)) {
    const { id: transactionId } = after
    await insertReceipt(tx, {
      appId: app.id,
      transactionId,
      kind,
      amount,
      total,
      status: 'due',
      failures: 0,
      nextTryAt: tx.now,
      lastError: null,
      createdAt: tx.now,
      sentAt: null,
    })
  }
}

function receiptsOf(before: Transaction, after: Transaction): { kind: ReceiptKind; amount: number; total: number }[] {
  const total = after.amountReceived
  const isNew = before.status === 'pending' && after.status === 'completed'
  const part = after.amountReceived - before.amountReceived
  const back = after.amountRefunded - before.amountRefunded
  return [
    ...(isNew ? [{ kind: 'received', amount: keptOf(after), total } as const] : []),
    ...(after.status === 'pending' && part > 0 ? [{ kind: 'part', amount: part, total } as const] : []),
    ...(back > 0 ? [{ kind: 'refunded', amount: back, total: after.amountRefunded } as const] : []),
  ]
}
