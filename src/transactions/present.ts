import { z } from 'zod'
import { discountOf } from '#promotions/discount.ts'
import { DiscountOutput } from '#promotions/present.ts'
import { formatIdOrNull } from '#shared/ids.ts'
import { formatTimestamp, formatTimestampOrNull } from '#shared/time.ts'
import { publicId, timestamp } from '#shared/validate.ts'
import { metadataOutput } from './metadata.ts'
import type { ShownTransaction, Transaction } from './store.ts'

/** The Transaction of the API. */
export const TransactionOutput = z
  .strictObject({
    transaction_id: z.int(),
    external_ref: z.string().describe('Your own id for the end user.'),
    mode: z.enum(['subscription', 'payment']),
    plan_ref: z.string(),
    price_id: publicId('price').nullable().describe('Null in mode `payment`.'),
    paygate_customer_id: publicId('cus').nullable(),
    amount: z.int().describe("The amount requested, in the currency's smallest unit: the price less `discount`."),
    discount: DiscountOutput,
    amount_received: z.int().describe('The amount received so far.'),
    amount_refunded: z.int().describe('What was refunded: the refunds that succeeded.'),
    currency: z.string(),
    status: z
      .enum(['pending', 'completed', 'refunded', 'void'])
      .describe(
        '`pending` until `amount` has arrived, then `completed`; `refunded` once it was refunded in full. `void` is reserved: no transaction has it.',
      ),
    provider_code: z
      .string()
      .nullable()
      .describe(
        'The provider that took the payment, see Payment methods. Before that, the one that the payer chose last; null until a choice. `promotion` if a promotion left nothing to pay.',
      ),
    flagged: z.boolean().describe('Whether an operator must review it.'),
    flag_reason: z
      .string()
      .nullable()
      .describe(
        '`underpaid`, `already_lifetime`, `trial_already_used`, `duplicate_payment`, `period_guard` or `superseded`; null if it is not flagged.',
      ),
    created_at: timestamp,
    completed_at: timestamp.nullable(),
    metadata: metadataOutput,
  })
  .meta({
    id: 'Transaction',
    description: 'A requested payment and its outcome.',
    examples: [
      {
        transaction_id: 1,
        external_ref: 'user-42',
        mode: 'subscription',
        plan_ref: 'premium',
        price_id: 'price_1',
        paygate_customer_id: 'cus_1',
        amount: 99000,
        discount: null,
        amount_received: 99000,
        amount_refunded: 0,
        currency: 'VND',
        status: 'completed',
        provider_code: 'test',
        flagged: false,
        flag_reason: null,
        created_at: '2026-12-01 09:30:00',
        completed_at: '2026-12-01 09:31:12',
        metadata: { order: 'A-1042' },
      },
    ],
  })

/** The transaction as the audit log keeps it before and after a decision: without the seller's metadata. */
export function presentStanding(transaction: Transaction) {
  return {
    transaction_id: transaction.id,
    external_ref: transaction.externalRef,
    mode: transaction.mode,
    plan_ref: transaction.planRef,
    price_id: formatIdOrNull('price', transaction.priceId),
    paygate_customer_id: formatIdOrNull('cus', transaction.customerId),
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

export function presentTransaction(transaction: ShownTransaction): z.input<typeof TransactionOutput> {
  return {
    ...presentStanding(transaction),
    discount: discountOf(transaction),
    amount_refunded: transaction.amountRefunded - transaction.refundPending,
    metadata: transaction.metadata ?? {},
  }
}
