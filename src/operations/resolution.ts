import type { Payment, Transaction } from '#transactions/store.ts'

export const RESOLUTIONS = ['refund', 'complete', 'dismiss'] as const
export type Resolution = (typeof RESOLUTIONS)[number]

/** Why an operator may not resolve the transaction so, as a sentence that says what to do; null where they may. */
export function refusalOf(transaction: Transaction, action: Resolution, payments: readonly Payment[]): string | null {
  const { flagReason, status } = transaction
  switch (action) {
    case 'complete':
      return status === 'pending' || isSuperseded(transaction)
        ? null
        : `it is ${status}: only a pending transaction, or a superseded one, can be completed; refund or dismiss it`
    case 'dismiss':
      return flagReason === null ? 'it is not flagged: there is nothing to dismiss' : null
    case 'refund':
      // So that a command that is given twice does not take back, after the surplus, what was bought.
      if (flagReason === null && transaction.resolution === 'refunded') return 'it was refunded already'
      return paymentsToRefund(transaction, payments).length === 0 ? 'no money is left to be refunded' : null
  }
}

/** Whether the money came, and was not applied because the subscription had changed since it was asked for. */
export function isSuperseded({ status, flagReason }: Transaction): boolean {
  return status === 'completed' && flagReason === 'superseded'
}

/**
 * The payments that a refund gives back. A duplicate gives back what came beyond the amount, newest first; anything else gives back
 * all.
 */
export function paymentsToRefund(transaction: Transaction, payments: readonly Payment[]): Payment[] {
  const kept = payments.filter((payment) => payment.refundedAt === null)
  if (transaction.flagReason !== 'duplicate_payment') return kept
  let surplus = kept.reduce((sum, { amount }) => sum + amount, 0) - transaction.amount
  return [...kept].reverse().filter(({ amount }) => {
    const isSurplus = amount <= surplus
    if (isSurplus) surplus -= amount
    return isSurplus
  })
}

/** Whether all the money is given back, so that the transaction ends as `refunded`. */
export function endsRefunded({ flagReason }: Transaction): boolean {
  return flagReason !== 'duplicate_payment'
}

/** Whether the payment was applied to a subscription, whose period a refund leaves as it is. */
export function keepsPeriod({ flagReason, mode, status }: Transaction): boolean {
  const isApplied = flagReason === null || flagReason === 'duplicate_payment'
  return mode === 'subscription' && status === 'completed' && isApplied
}
