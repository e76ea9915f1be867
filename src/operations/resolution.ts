import type { FlagReason, Payment, Transaction } from '#transactions/store.ts'

export const RESOLUTIONS = ['refund', 'complete', 'dismiss'] as const
export type Resolution = (typeof RESOLUTIONS)[number]

/** Flags whose payment was completed without being applied. */
const NOT_APPLIED: ReadonlySet<FlagReason> = new Set(['already_lifetime', 'trial_already_used', 'period_guard'])

/** Why an operator may not resolve the transaction so, as a sentence that says what to do; null where they may. */
export function refusalOf(transaction: Transaction, action: Resolution, payments: readonly Payment[]): string | null {
  const { flagReason, status } = transaction
  switch (action) {
    case 'complete':
      return status === 'pending'
        ? null
        : `it is ${status}: only a pending transaction can be completed; refund or dismiss it`
    case 'dismiss':
      return flagReason === null ? 'it is not flagged: there is nothing to dismiss' : null
    case 'refund':
      if (flagReason === null) return 'it is not flagged: only flagged payments are refunded here'
      return paymentsToRefund(transaction, payments).length === 0 ? 'no money is left to be refunded' : null
  }
}

/**
 * The payments that a refund gives back. A duplicate gives back what came beyond the amount, newest first; any other flag gives back
 * all, since nothing was given for it.
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

/** Whether all that the transaction gave is taken back with the refund, so that it ends as `refunded`. */
export function endsRefunded({ flagReason, status }: Transaction): boolean {
  return status === 'pending' || (flagReason !== null && NOT_APPLIED.has(flagReason))
}
