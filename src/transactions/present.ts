import { formatId } from '#shared/ids.ts'
import { formatTimestamp, formatTimestampOrNull } from '#shared/time.ts'
import type { Transaction } from './store.ts'

/** The Transaction of the API (contract 3). */
export function presentTransaction(transaction: Transaction): Record<string, unknown> {
  return {
    transaction_id: transaction.id,
    external_ref: transaction.externalRef,
    mode: transaction.mode,
    plan_ref: transaction.planRef,
    price_id: transaction.priceId === null ? null : formatId('price', transaction.priceId),
    paygate_customer_id: transaction.customerId === null ? null : formatId('cus', transaction.customerId),
    amount: transaction.amount,
    amount_received: transaction.amountReceived,
    currency: transaction.currency,
    status: transaction.status,
    provider_code: transaction.providerCode,
    flagged: transaction.flagReason !== null,
    flag_reason: transaction.flagReason,
    created_at: formatTimestamp(transaction.createdAt),
    completed_at: formatTimestampOrNull(transaction.completedAt),
  }
}
