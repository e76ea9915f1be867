import type { QuotedPayment } from '#subscriptions/decide-payment.ts'
import type { Transaction } from './store.ts'

/** The stored quote of a transaction, as `decidePayment` takes it; null for a one-time purchase. */
export function quotedPayment(
  transaction: Transaction,
): (QuotedPayment & { readonly appId: number; readonly endUserId: number; readonly priceId: number }) | null {
  const { appId, endUserId, priceId, purpose, isRenewal, isTrial, createdAt } = transaction
  if (transaction.mode === 'payment') return null
  if (priceId === null || purpose === 'purchase')
    throw new Error(`transaction ${transaction.id} is for a subscription and names no price`)
  return { appId, endUserId, priceId, purpose: isTrial ? 'trial' : purpose, isRenewal, createdAt }
}
