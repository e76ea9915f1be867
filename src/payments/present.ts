import { formatTimestamp, formatTimestampOrNull } from '#shared/time.ts'
import type { Allocation, Payment, Refund } from './store.ts'

/** A payment for operators. `amount` is null until an operator states it; `amount_left` is the part that is not allocated. */
export function presentPayment(payment: Payment) {
  return {
    payment_id: payment.id,
    app_id: payment.appId,
    provider_code: payment.provider,
    reference: payment.reference,
    amount: payment.amount,
    amount_left: payment.amountLeft,
    currency: payment.currency,
    paid_at: formatTimestamp(payment.paidAt),
    received_at: formatTimestamp(payment.receivedAt),
    closed_at: formatTimestampOrNull(payment.closedAt),
  }
}

export function presentAllocation(allocation: Allocation) {
  return {
    transaction_id: allocation.transactionId,
    payment_id: allocation.paymentId,
    refund_id: allocation.refundId,
    amount: allocation.amount,
    cause: allocation.cause,
    actor: allocation.actor,
    note: allocation.note,
    at: formatTimestamp(allocation.at),
  }
}

/** `failure` says why a refund failed; `actor` is null if it was made at the provider. */
export function presentRefund(refund: Refund) {
  return {
    refund_id: refund.id,
    payment_id: refund.paymentId,
    amount: refund.amount,
    status: refund.status,
    reference: refund.reference,
    failure: refund.failure,
    actor: refund.actor,
    note: refund.note,
    created_at: formatTimestamp(refund.createdAt),
    ended_at: formatTimestampOrNull(refund.endedAt),
  }
}
