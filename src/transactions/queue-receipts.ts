import type { NotifiedApp } from '#apps/store.ts'
import type { Tx } from '#commands/transaction.ts'
import { UNTRIED } from '#mail/mail-columns.ts'
import { keptOf } from '#payments/balance.ts'
import { listRefundsOfTransaction } from '#payments/store.ts'
import type { Transaction } from './store.ts'
import { insertReceipt, type Receipt } from './receipts/store.ts'

type ReceiptContent = Pick<Receipt, 'kind' | 'amount' | 'total'>

/** Adds the mails about a change of a transaction, in the same database transaction. */
export async function queueReceipts(tx: Tx, app: NotifiedApp, before: Transaction, after: Transaction): Promise<void> {
  for (const content of [...receivedOf(before, after), ...(await refundedOf(tx, before, after))]) {
    await insertReceipt(tx, {
      appId: app.id,
      transactionId: after.id,
      ...content,
      ...UNTRIED,
      status: 'due',
      retryAt: tx.now,
      createdAt: tx.now,
    })
  }
}

function receivedOf(before: Transaction, after: Transaction): ReceiptContent[] {
  const total = after.amountReceived
  // The discount covers the whole price: nobody has paid.
  if (after.amount === 0) return []
  if (before.status === 'pending' && after.status === 'completed')
    return [{ kind: 'received', amount: keptOf(after), total }]
  const part = after.amountReceived - before.amountReceived
  return after.status === 'pending' && part > 0 ? [{ kind: 'part', amount: part, total }] : []
}

/** One mail for all the payments that a decision refunds. */
async function refundedOf(tx: Tx, before: Transaction, after: Transaction): Promise<ReceiptContent[]> {
  const amount = after.amountRefunded - before.amountRefunded
  if (amount <= 0) return []
  const refunds = await listRefundsOfTransaction(tx, after.id)
  return [{ kind: 'refunded', amount, total: refunds.reduce((sum, { taken }) => sum + taken, 0) }]
}
