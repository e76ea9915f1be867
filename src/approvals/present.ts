import { formatTimestamp } from '#shared/time.ts'
import type { Approval } from './store.ts'

/** As lists show an approval. */
export function presentApproval({ id, status, requestedBy, requestedAt, command, transactionId, ...row }: Approval) {
  return {
    id,
    requested_by: requestedBy,
    requested_at: formatTimestamp(requestedAt),
    command,
    transaction_id: transactionId,
    amount: row.amount,
    currency: row.currency,
    status,
  }
}

/** With the dry run that is approved, and the decision. */
export function presentWholeApproval(approval: Approval) {
  const { paymentId, effects, decidedBy, decidedAt, note } = approval
  return {
    ...presentApproval(approval),
    payment_id: paymentId,
    effects,
    decided_by: decidedBy,
    decided_at: decidedAt && formatTimestamp(decidedAt),
    note,
  }
}
