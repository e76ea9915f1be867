import type { Context } from '#context.ts'
import type { PageRequest } from '#db/conditions.ts'
import { ListQuery, listPage, type Page } from '#http/list-page.ts'
import { validate } from '#shared/validate.ts'
import { presentPayment } from './present.ts'
import { listRefundsOfTransaction } from './store.ts'
import { listPaymentRows, type ListedPayment, type PaymentFilter } from './lists/store.ts'

/**
 * A page of payments, the newest first. `waiting` lists only those with money that waits for a decision; `appId` null lists the payments of
 * all apps.
 */
export async function listPayments(
  ctx: Context,
  filter: Omit<PaymentFilter, keyof PageRequest>,
  page: unknown,
): Promise<Page<ListedPayment>> {
  const list = (request: PageRequest) => listPaymentRows(ctx.db, { ...filter, ...request })
  return listPage('payments', validate(ListQuery, page), list, ({ receivedAt }) => receivedAt)
}

/** A listed payment for operators; `reason` is why its money waits: a transaction's flag, or `unmatched`. */
export function presentListedPayment(payment: ListedPayment) {
  const { waiting, flagReason, transactionId, externalRef } = payment
  return {
    ...presentPayment(payment),
    external_ref: externalRef,
    transaction_id: transactionId,
    amount_unapplied: waiting,
    reason: waiting === 0 ? null : (flagReason ?? 'unmatched'),
  }
}

export type PresentedPayment = ReturnType<typeof presentListedPayment>

/** The refunds of a transaction, for operators; amounts in the smallest unit. */
export async function refundsOf(
  ctx: Context,
  transactionId: number,
): Promise<{ refund_id: number; amount: number; status: string; reference: string | null }[]> {
  const refunds = await listRefundsOfTransaction(ctx.db, transactionId)
  return refunds.map(({ id, taken, status, reference }) => ({ refund_id: id, amount: taken, status, reference }))
}
