import { appNow } from '#apps/app-time.ts'
import type { NotifiedApp } from '#apps/store.ts'
import type { Tx } from '#commands/transaction.ts'
import { listRefundsOfTransaction } from '#payments/store.ts'
import { formatTimestamp } from '#shared/time.ts'
import { emitEvent, isSentTo } from '#webhooks/emit-event.ts'
import type { Transaction } from './store.ts'

/** Reports refunds of a transaction that have just succeeded, each in its own event, to an app that opted in. A step. */
export async function announceRefunds(
  tx: Tx,
  app: NotifiedApp,
  transaction: Transaction,
  refundIds: readonly number[],
): Promise<void> {
  if (refundIds.length === 0 || !isSentTo(app, 'transaction.refunded')) return
  const { id, externalRef, planRef, currency, status } = transaction
  let total = 0
  const made = (await listRefundsOfTransaction(tx, id)).filter((refund) => refund.status === 'succeeded')
  const isNew = (refund: { readonly id: number }): boolean => refundIds.includes(refund.id)
  // The new ones last, so that each event's total includes all earlier refunds.
  for (const refund of [...made.filter((one) => !isNew(one)), ...made.filter(isNew)]) {
    total += refund.taken
    if (!isNew(refund)) continue
    const data = {
      transaction_id: id,
      external_ref: externalRef,
      plan_ref: planRef,
      amount_refunded: refund.taken,
      amount_refunded_total: total,
      currency,
      status,
      refunded_at: formatTimestamp(appNow(app, tx.now)),
    } as const
    await emitEvent(tx, { app, type: 'transaction.refunded', data })
  }
}
