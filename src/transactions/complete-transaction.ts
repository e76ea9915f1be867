import { appNow } from '#apps/app-time.ts'
import type { App } from '#apps/store.ts'
import type { Tx } from '#commands/transaction.ts'
import { wholeSeconds, type AppTime, type RealTime } from '#shared/time.ts'
import { applyPayment, type Refusal } from '#subscriptions/apply-payment.ts'
import { emitEvent } from '#webhooks/emit-event.ts'
import { updateTransactionIn, type ProviderCode, type Transaction } from './store.ts'

export interface Completion {
  readonly providerCode: ProviderCode
  readonly amountReceived: number
  /** Real time. */
  readonly paidAt: RealTime
}

/**
 * Completes a pending transaction and gives what was paid for: a one-time purchase its event, a subscription its period. What cannot
 * be applied is completed and flagged. A step, under the end user's lock.
 */
export async function completeTransaction(
  tx: Tx,
  app: App,
  transaction: Transaction,
  completion: Completion,
): Promise<void> {
  const now = appNow(app, tx.now)
  const refusal = await give(tx, app, transaction, completion)
  const isCompleted = await updateTransactionIn(tx, transaction.id, 'pending', {
    status: 'completed',
    providerCode: completion.providerCode,
    amountReceived: completion.amountReceived,
    flagReason: refusal,
    flaggedAt: refusal === null ? null : now,
    completedAt: now,
    updatedAt: now,
  })
  if (!isCompleted) throw new Error(`transaction ${transaction.id} was completed by another under the lock`)
}

async function give(tx: Tx, app: App, transaction: Transaction, completion: Completion): Promise<Refusal | null> {
  if (transaction.mode === 'payment') {
    await announceCompletion(tx, app, transaction)
    return null
  }
  if (transaction.priceId === null)
    throw new Error(`transaction ${transaction.id} is for a subscription and names no price`)
  return applyPayment(tx, app, {
    transactionId: transaction.id,
    endUserId: transaction.endUserId,
    externalRef: transaction.externalRef,
    priceId: transaction.priceId,
    customerId: transaction.customerId,
    isTrial: transaction.isTrial,
    renewsEnd: transaction.renewsEnd,
    amount: transaction.amount,
    currency: transaction.currency,
    providerCode: completion.providerCode,
    paidAt: paymentTime(tx, app, transaction, completion.paidAt),
  })
}

async function announceCompletion(tx: Tx, app: App, transaction: Transaction): Promise<void> {
  const { externalRef, planRef, amount, currency } = transaction
  const data = { external_ref: externalRef, plan_ref: planRef, amount, currency, status: 'completed' } as const
  await emitEvent(tx, app, 'transaction.completed', data, { externalRef, transactionId: transaction.id })
}

/**
 * When the payment counts as made, in the app's own time and whole seconds. Never before the transaction was opened and never in the
 * future, whatever a provider's clock or a mail's date says.
 */
function paymentTime(tx: Tx, app: App, transaction: Transaction, paidAt: RealTime): AppTime {
  const now = appNow(app, tx.now)
  const told = appNow(app, paidAt)
  const notEarly = told < transaction.createdAt ? transaction.createdAt : told
  return wholeSeconds(notEarly > now ? now : notEarly)
}
