import { appNow } from '#apps/app-time.ts'
import type { NotifiedApp } from '#apps/store.ts'
import type { Tx } from '#commands/transaction.ts'
import { arrived, completed, keptOf } from '#payments/balance.ts'
import { countUse } from '#promotions/take-use.ts'
import { AppError } from '#shared/errors.ts'
import { formatId } from '#shared/ids.ts'
import { wholeSeconds, type AppTime, type RealTime } from '#shared/time.ts'
import { applyPayment } from '#subscriptions/apply-payment.ts'
import type { QuotedPayment } from '#subscriptions/decide-payment.ts'
import type { Refusal } from '#subscriptions/lifecycle.ts'
import { emitEvent } from '#webhooks/emit-event.ts'
import { changeTransaction, type OperatorDecision, type TransactionChanges } from './change-transaction.ts'
import type { ProviderCode, Sale, Transaction } from './store.ts'

/** Money that counts for a transaction from now on, whether it has just arrived or was moved here. */
export interface ArrivedMoney {
  readonly provider: ProviderCode
  /** In the smallest unit of the transaction's currency. */
  readonly amount: number
  readonly paidAt: RealTime
}

export interface Received {
  readonly kind: 'processed' | 'underpaid' | 'already_completed'
  readonly transaction: Transaction
}

/**
 * Counts money for the transaction that it was booked for: completes a pending transaction if it is enough, and flags it as underpaid
 * otherwise. If the transaction is no longer pending, flags the money as a duplicate. A step, under the end user's lock.
 */
export async function receiveMoney(tx: Tx, sale: Sale, { provider, amount, paidAt }: ArrivedMoney): Promise<Received> {
  const { app, transaction } = sale
  const balance = arrived(transaction, amount)
  if (transaction.status !== 'pending') {
    const flagReason = transaction.flagReason ?? 'duplicate_payment'
    return {
      kind: 'already_completed',
      transaction: await changeTransaction(tx, app, transaction, { ...balance, flagReason }),
    }
  }
  if (keptOf(balance) < transaction.amount) {
    // Dismissed money counts again: together with this it may complete the payment.
    const changes = {
      ...balance,
      amountLeft: keptOf(balance),
      flagReason: 'underpaid',
      providerCode: provider,
    } as const
    return { kind: 'underpaid', transaction: await changeTransaction(tx, app, transaction, changes) }
  }
  const paid = { ...sale, transaction: { ...transaction, ...balance } }
  return { kind: 'processed', transaction: await completeTransaction(tx, paid, { providerCode: provider, paidAt }) }
}

export interface Completion {
  readonly providerCode: ProviderCode
  /** Real time. */
  readonly paidAt: RealTime
}

/**
 * Completes a pending transaction and delivers what was paid for: the event of a one-time purchase, or the period of a subscription. A
 * payment that cannot be applied is completed and flagged. The transaction includes money that is not stored yet. Returns the changed
 * transaction. A step, under the end user's lock. Throws `invalid_request` if it cannot be applied and no money arrived.
 */
export async function completeTransaction(
  tx: Tx,
  sale: Sale,
  completion: Completion,
  decision: OperatorDecision | null = null,
): Promise<Transaction> {
  const { app, transaction } = sale
  const refusal = await give(tx, sale, completion)
  // A flag is about money that waits for a decision.
  if (refusal !== null && keptOf(transaction) === 0) throw notApplicable(transaction, refusal)
  const { promotionCode } = transaction
  if (promotionCode !== null) await countUse(tx, { ...transaction, promotionCode }, appNow(app, tx.now))
  const changes: TransactionChanges = {
    ...completed(transaction, transaction.amount, refusal === null),
    status: 'completed',
    providerCode: completion.providerCode,
    flagReason: refusal,
    completedAt: appNow(app, tx.now),
    ...(decision ? { resolution: 'completed', resolvedAt: appNow(app, tx.now) } : {}),
  }
  return changeTransaction(tx, app, transaction, changes, decision)
}

async function give(tx: Tx, { app, transaction, subject }: Sale, completion: Completion): Promise<Refusal | null> {
  const quote = quotedPayment(transaction)
  if (!quote) {
    await announceCompletion(tx, app, transaction)
    return null
  }
  if (!subject) throw new Error(`transaction ${transaction.id} names a price that does not exist`)
  const { providerCode } = completion
  const paidAt = paymentTime(tx, app, transaction, completion.paidAt)
  return applyPayment(tx, app, { ...paymentOf(transaction), ...quote, providerCode, paidAt }, subject)
}

/**
 * Applies a superseded payment now, as it was bought (R134): a purchase starts its plan, an extension extends the present period,
 * a trial starts. Clears the flag. A step, under the end user's lock. Throws `invalid_request` if it still cannot be applied.
 */
export async function applySuperseded(
  tx: Tx,
  { app, transaction, subject }: Sale,
  providerCode: ProviderCode,
  decision: OperatorDecision,
): Promise<Transaction> {
  const quote = quotedPayment(transaction)
  const now = appNow(app, tx.now)
  const paidAt = wholeSeconds(now)
  if (!quote || !subject) throw new Error(`transaction ${transaction.id} is superseded and names no price`)
  const accepted = {
    ...paymentOf(transaction),
    ...quote,
    // An operator's decision counts from now on; an extension is not a decision.
    createdAt: quote.purpose === 'extend' ? quote.createdAt : paidAt,
    isAccepted: true,
    providerCode,
    paidAt,
  }
  const refusal = await applyPayment(tx, app, accepted, subject)
  if (refusal !== null) throw notApplicable(transaction, refusal)
  const resolved = { flagReason: null, resolution: 'completed', resolvedAt: now } as const
  const changes = { ...completed(transaction, transaction.amount, true), ...resolved }
  return changeTransaction(tx, app, transaction, changes, decision)
}

function notApplicable({ id }: Transaction, refusal: Refusal): AppError {
  return new AppError('invalid_request', `transaction ${id} cannot be applied: ${refusal}`)
}

function paymentOf({ id, externalRef, customerId, renewsEnd, amount, currency }: Transaction) {
  return { transactionId: id, externalRef, customerId, renewsEnd, amount, currency }
}

async function announceCompletion(tx: Tx, app: NotifiedApp, transaction: Transaction): Promise<void> {
  const { externalRef, planRef, amount, currency, customerId } = transaction
  const data = {
    transaction_id: transaction.id,
    external_ref: externalRef,
    paygate_customer_id: customerId === null ? null : formatId('cus', customerId),
    plan_ref: planRef,
    amount,
    currency,
    status: 'completed',
    metadata: transaction.metadata ?? {},
  } as const
  await emitEvent(tx, app, 'transaction.completed', data, { externalRef, transactionId: transaction.id })
}

/**
 * When the payment counts as made, in the app's own time and whole seconds: never before the transaction was opened and never in the
 * future, even if a provider's clock says so.
 */
function paymentTime(tx: Tx, app: NotifiedApp, transaction: Transaction, paidAt: RealTime): AppTime {
  const now = appNow(app, tx.now)
  const reported = appNow(app, paidAt)
  const notEarly = reported < transaction.createdAt ? transaction.createdAt : reported
  return wholeSeconds(notEarly > now ? now : notEarly)
}

/** The stored quote of a transaction, as `decideOn` takes it; null for a one-time purchase. */
export function quotedPayment(
  transaction: Transaction,
): (QuotedPayment & { readonly appId: number; readonly endUserId: number; readonly priceId: number }) | null {
  const { appId, endUserId, priceId, purpose, isRenewal, isTrial, createdAt } = transaction
  if (transaction.mode === 'payment') return null
  if (priceId === null || purpose === 'purchase')
    throw new Error(`transaction ${transaction.id} is for a subscription and names no price`)
  return { appId, endUserId, priceId, purpose: isTrial ? 'trial' : purpose, isRenewal, createdAt }
}
