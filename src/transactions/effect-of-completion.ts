import type { Tx } from '#commands/transaction.ts'
import { formatUtc } from '#shared/time.ts'
import { findSubscriptionOfEndUser } from '#subscriptions/store.ts'
import type { Transaction } from './store.ts'

/** The end of the end user's period, for operators. */
export async function periodEndText(tx: Tx, { endUserId }: Pick<Transaction, 'endUserId'>): Promise<string> {
  const subscription = await findSubscriptionOfEndUser(tx, endUserId)
  if (!subscription) return 'no subscription'
  return subscription.currentPeriodEnd ? formatUtc(subscription.currentPeriodEnd) : 'lifetime'
}

/** What the completion of a transaction did beside its events, as sentences for the operator; `endBefore` is the earlier result of `periodEndText`. */
export async function effectOfCompletion(tx: Tx, after: Transaction, endBefore: string): Promise<string[]> {
  if (after.flagReason !== null) return [`cannot be applied: flagged ${after.flagReason}`]
  return after.mode === 'payment' ? [] : [`valid until: ${endBefore} → ${await periodEndText(tx, after)}`]
}
