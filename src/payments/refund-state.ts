import type { Refund } from './store.ts'

type RefundState = Pick<Refund, 'status' | 'reference'>

/** Whether the provider has not answered, so that it may have made the refund. */
export function isUnanswered({ status, reference }: RefundState): boolean {
  return status === 'pending' && reference === null
}

/** Whether the provider refused to make the refund, whose money went back to the transaction. */
export function isRefused({ status, reference }: RefundState): boolean {
  return status === 'failed' && reference === null
}

/** Whether the refund failed after the provider had made it, which left its money unallocated (R131). */
export function hasFailedLater({ status, reference }: RefundState): boolean {
  return status === 'failed' && reference !== null
}
