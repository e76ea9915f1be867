import { appNow } from '#apps/app-time.ts'
import type { NotifiedApp } from '#apps/store.ts'
import type { OperatorNote } from '#commands/operator-note.ts'
import type { Tx } from '#commands/transaction.ts'
import { balanceAfterArrival, balanceAfterCompletion, keptOf, paidOf } from '#payments/balance.ts'
import { countUse } from '#promotions/take-use.ts'
import { AppError } from '#shared/errors.ts'
import { formatIdOrNull } from '#shared/ids.ts'
import { wholeSeconds, type AppTime, type RealTime } from '#shared/time.ts'
import { applyPayment, type PaidTransaction } from '#subscriptions/apply-payment.ts'
import type { Refusal } from '#subscriptions/lifecycle.ts'
import { emitEvent } from '#webhooks/emit-event.ts'
import { changeTransaction, type TransactionChanges } from './change-transaction.ts'
import type { ProviderCode, Transaction, TransactionRows } from './store.ts'

/** Money that counts for a transaction from now on, whether it has just arrived or was moved here. */
export interface ArrivedMoney {
  readonly provider: ProviderCode
  /** In the smallest unit of the transaction's currency. */
  readonly amount: number
  readonly paidAt: RealTime
}

export interface Received {
  /** `already_completed`: nothing was due, because the transaction was completed or refunded before. */
  readonly kind: 'processed' | 'underpaid' | 'already_completed'
  readonly transaction: Transaction
}

/**
 * Counts money for the transaction to which it is allocated (R120 to R123). A pending transaction is completed if the money is enough, and
 * flagged `underpaid` otherwise, whether its checkout link has expired or not. If nothing is due any more, the transaction is flagged
 * `duplicate_payment`, unless it has a flag. A step, under the end user's lock.
 */
export async function receiveMoney(
  tx: Tx,
  rows: TransactionRows,
  { provider, amount, paidAt }: ArrivedMoney,
): Promise<Received> {
  const { app, transaction } = rows
  const balance = balanceAfterArrival(transaction, amount)
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
  const paid = { ...rows, transaction: { ...transaction, ...balance } }
  return { kind: 'processed', transaction: await completeTransaction(tx, paid, { providerCode: provider, paidAt }) }
}

export interface Completion {
  readonly providerCode: ProviderCode
  readonly paidAt: RealTime
}

/**
 * Completes a pending transaction: emits the event of a one-time purchase, or applies the subscription period. A transaction that cannot be
 * applied is completed and flagged. The balance in `rows` counts money that is not stored yet. Returns the changed transaction. A step,
 * under the end user's lock. Throws `invalid_request` if it cannot be applied and no money arrived.
 */
export async function completeTransaction(
  tx: Tx,
  rows: TransactionRows,
  completion: Completion,
  operatorNote: OperatorNote | null = null,
): Promise<Transaction> {
  const { app, transaction } = rows
  const refusal = await applyPurchase(tx, rows, completion)
  // Flag only transactions that hold money.
  if (refusal !== null && keptOf(transaction) === 0) throw notApplicable(transaction, refusal)
  const { promotionCode } = transaction
  if (promotionCode !== null) await countUse(tx, { ...transaction, promotionCode }, appNow(app, tx.now))
  const changes: TransactionChanges = {
    ...balanceAfterCompletion(transaction, transaction.amount, refusal === null),
    status: 'completed',
    providerCode: completion.providerCode,
    flagReason: refusal,
    completedAt: appNow(app, tx.now),
    // What operators decided about a part of the money does not explain the completed transaction.
    ...(operatorNote
      ? { resolution: 'completed', resolvedAt: appNow(app, tx.now) }
      : { resolution: null, resolvedAt: null }),
  }
  return changeTransaction(tx, app, transaction, changes, operatorNote)
}

async function applyPurchase(
  tx: Tx,
  { app, transaction, forSubscription }: TransactionRows,
  { providerCode, paidAt }: Completion,
): Promise<Refusal | null> {
  if (!forSubscription) {
    await announceCompletion(tx, app, transaction)
    return null
  }
  const paid = paidTransaction(transaction, providerCode, paymentTime(tx, app, transaction, paidAt))
  return applyPayment(tx, app, paid, forSubscription)
}

/**
 * Applies a superseded payment now, as it was bought (R134): a purchase starts its plan, an extension extends the present period,
 * a trial starts. Clears the flag. A step, under the end user's lock. Throws `invalid_request` if it still cannot be applied.
 */
export async function applySuperseded(
  tx: Tx,
  { app, transaction, forSubscription }: TransactionRows,
  providerCode: ProviderCode,
  operatorNote: OperatorNote,
): Promise<Transaction> {
  const now = appNow(app, tx.now)
  const paidAt = wholeSeconds(now)
  if (!forSubscription) throw new Error(`transaction ${transaction.id} is superseded and for no subscription`)
  const { quote } = forSubscription
  // An accepted plan choice counts from now on; an extension chooses no plan.
  const openedAt = quote.purpose === 'extend' ? quote.openedAt : now
  const accepted = { ...forSubscription, quote: { ...quote, openedAt, isAccepted: true } }
  const refusal = await applyPayment(tx, app, paidTransaction(transaction, providerCode, paidAt), accepted)
  if (refusal !== null) throw notApplicable(transaction, refusal)
  const resolved = { flagReason: null, resolution: 'completed', resolvedAt: now } as const
  const changes = { ...balanceAfterCompletion(transaction, transaction.amount, true), ...resolved }
  return changeTransaction(tx, app, transaction, changes, operatorNote)
}

function notApplicable({ id }: Transaction, refusal: Refusal): AppError {
  return new AppError('invalid_request', `transaction ${id} cannot be applied: ${refusal}; refund or dismiss it`)
}

function paidTransaction(transaction: Transaction, providerCode: ProviderCode, paidAt: AppTime): PaidTransaction {
  const { id: transactionId, endUserId, externalRef, customerId, currency } = transaction
  const amount = paidOf(transaction, transaction.amount)
  return { transactionId, endUserId, externalRef, customerId, amount, currency, providerCode, paidAt }
}

async function announceCompletion(tx: Tx, app: NotifiedApp, transaction: Transaction): Promise<void> {
  const { externalRef, planRef, amount, currency, customerId } = transaction
  const data = {
    transaction_id: transaction.id,
    external_ref: externalRef,
    paygate_customer_id: formatIdOrNull('cus', customerId),
    plan_ref: planRef,
    amount,
    currency,
    status: 'completed',
    metadata: transaction.metadata ?? {},
  } as const
  await emitEvent(tx, { app, type: 'transaction.completed', data })
}

/**
 * When the payment counts as made, in the app's own time and whole seconds. Even if a provider's clock is wrong, this is never before the
 * transaction was opened and never in the future.
 */
function paymentTime(tx: Tx, app: NotifiedApp, transaction: Transaction, paidAt: RealTime): AppTime {
  const now = appNow(app, tx.now)
  const reported = appNow(app, paidAt)
  const notEarly = reported < transaction.createdAt ? transaction.createdAt : reported
  return wholeSeconds(notEarly > now ? now : notEarly)
}
