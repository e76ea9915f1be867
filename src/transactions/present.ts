import { z } from 'zod'
import { formatId } from '#shared/ids.ts'
import { formatTimestamp, formatTimestampOrNull } from '#shared/time.ts'
import { timestamp } from '#shared/validate.ts'
import type { Transaction } from './store.ts'

/** The Transaction of the API (contract 3). */
export const TransactionOutput = z.strictObject({
  transaction_id: z.int(),
  external_ref: z.string(),
  mode: z.enum(['subscription', 'payment']),
  plan_ref: z.string(),
  price_id: z.string().nullable(),
  paygate_customer_id: z.string().nullable(),
  amount: z.int(),
  amount_received: z.int(),
  currency: z.string(),
  status: z.enum(['pending', 'completed', 'refunded', 'void']),
  provider_code: z.string().nullable(),
  flagged: z.boolean(),
  flag_reason: z.string().nullable(),
  created_at: timestamp,
  completed_at: timestamp.nullable(),
})

export function presentTransaction(transaction: Transaction): z.input<typeof TransactionOutput> {
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
