import { keptOf } from '#payments/balance.ts'
import { englishMoney } from '#shared/money.ts'
import type { Transaction } from '#transactions/store.ts'

export const RESOLUTIONS = ['refund', 'complete', 'dismiss'] as const
export type Resolution = (typeof RESOLUTIONS)[number]

/** Why the transaction cannot be resolved by this action, and what to do instead; null if it can. */
export function resolutionRefusalOf(
  transaction: Transaction,
  action: Resolution,
  amount: number | null,
): string | null {
  const { flagReason, status } = transaction
  switch (action) {
    case 'complete':
      return status === 'pending' || wasSuperseded(transaction)
        ? null
        : `it is ${status}: only a pending transaction, or a superseded one, can be completed; refund or dismiss it`
    case 'dismiss':
      return flagReason === null ? 'it is not flagged: there is nothing to dismiss' : null
    case 'refund':
      return refusalOfRefund(transaction, amount)
  }
}

/** Whether the money was received and not applied, because the subscription had changed since the payment was opened. */
export function wasSuperseded({ status, flagReason }: Transaction): boolean {
  return status === 'completed' && flagReason === 'superseded'
}

function refusalOfRefund(transaction: Transaction, amount: number | null): string | null {
  const kept = keptOf(transaction)
  if (kept === 0)
    return transaction.amountRefunded > 0 ? 'all of it was refunded already' : 'no money is left to be refunded'
  // A command that is repeated must not refund the purchase after the surplus.
  if (amount === null && transaction.flagReason === null && transaction.resolution === 'refunded')
    return `it was refunded already; to refund more of the ${englishMoney(kept, transaction.currency)} still kept, add --amount`
  return amount !== null && amount > kept
    ? `only ${englishMoney(kept, transaction.currency)} is left to be refunded`
    : null
}

/** The amount to refund: `amount`; by default the surplus of a duplicate, and all that is kept of anything else. */
export function amountToRefund(transaction: Transaction, amount: number | null): number {
  return amount ?? (transaction.flagReason === 'duplicate_payment' ? transaction.amountLeft : keptOf(transaction))
}

/** Whether the payment was applied to a subscription, whose period a refund does not change. */
export function keepsPeriod({ mode, status, amountUsed }: Transaction): boolean {
  return mode === 'subscription' && status === 'completed' && amountUsed > 0
}
