import { appNow } from '#apps/app-time.ts'
import { getApp, type App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { inTransaction, type Tx } from '#commands/transaction.ts'
import { rewriteNode } from '#subscriptions/queue-node.ts'
import { lockEndUser } from '#subscriptions/store.ts'
import type { RealTime } from '#shared/time.ts'
import { completeTransaction } from './complete-transaction.ts'
import {
  findTransaction,
  getTransaction,
  insertPayment,
  insertProviderEvent,
  listPayments,
  updateTransactionIn,
  type FlagReason,
  type ProviderCode,
  type Transaction,
} from './store.ts'

/** Money that a provider, a bank or an operator says has arrived. Adapters prove it genuine, translate it to this, and call. */
export interface ConfirmedPayment {
  readonly provider: ProviderCode
  /** The provider's own id of the notification; null where there is none (a look-up, the test method). */
  readonly eventId: string | null
  readonly eventType?: string
  /** The provider's own id of the money: unique by provider. */
  readonly reference: string
  readonly transactionId: number
  /** In the smallest unit of `currency`. */
  readonly amount: number
  readonly currency: string
  /** Real time at which it was paid, as far as the provider can be believed; else when it was received. */
  readonly paidAt: RealTime
}

export type ConfirmOutcome =
  | { readonly kind: 'processed' | 'underpaid' | 'already_completed' | 'duplicate'; readonly transaction: Transaction }
  | { readonly kind: 'unknown_transaction' | 'wrong_currency'; readonly transaction: Transaction | null }

/**
 * The one door for money (contract 4): whatever confirms a payment calls this. In one transaction, under the end user's lock, it
 * remembers the provider's event, reads the transaction again, records the money, completes and applies it, and writes the events to
 * send. Nothing is sent inside. `duplicate`: this event or this money was here before, and nothing was run.
 */
export async function confirmPayment(ctx: Context, payment: ConfirmedPayment): Promise<ConfirmOutcome> {
  const outcome = await inTransaction(ctx, (tx) => confirmIn(tx, payment))
  tellOutcome(ctx, payment, outcome)
  return outcome
}

/** Counts and logs what became of a payment, once it is committed. */
export function tellOutcome(ctx: Context, payment: ConfirmedPayment, outcome: ConfirmOutcome): void {
  ctx.count('payments_total', { provider: payment.provider, outcome: outcome.kind })
  const transaction = outcome.transaction
  ctx.log.info(
    { provider: payment.provider, outcome: outcome.kind, transactionId: payment.transactionId },
    'a payment was reported',
  )
  if (transaction?.flagReason && outcome.kind !== 'duplicate') {
    ctx.count('payments_flagged_total', { reason: transaction.flagReason })
    ctx.log.warn(
      { transactionId: transaction.id, reason: transaction.flagReason },
      'a payment needs an operator: transaction resolve',
    )
  }
}

/** The steps of `confirmPayment`, for a command that has more to write in the same transaction; it tells the outcome after that. */
export async function confirmIn(tx: Tx, payment: ConfirmedPayment): Promise<ConfirmOutcome> {
  const found = await findTransaction(tx, payment.transactionId)
  if (!found) return { kind: 'unknown_transaction', transaction: null }
  if (!(await rememberEvent(tx, payment, found))) return { kind: 'duplicate', transaction: found }
  await lockEndUser(tx, found.appId, found.externalRef)
  const app = await getApp(tx, found.appId)
  const transaction = await getTransaction(tx, found.id)
  if (payment.currency !== transaction.currency) return { kind: 'wrong_currency', transaction }
  const isNew = await recordMoney(tx, transaction, payment)
  if (transaction.status !== 'pending') return confirmSettled(tx, app, transaction, isNew)
  if (!isNew) return { kind: 'duplicate', transaction }
  return confirmPending(tx, app, transaction, payment)
}

async function rememberEvent(tx: Tx, payment: ConfirmedPayment, transaction: Transaction): Promise<boolean> {
  if (payment.eventId === null) return true
  return insertProviderEvent(tx, {
    provider: payment.provider,
    eventId: payment.eventId,
    eventType: payment.eventType ?? 'payment',
    appId: transaction.appId,
    transactionId: transaction.id,
    outcome: 'applied',
    note: null,
    receivedAt: tx.now,
  })
}

async function recordMoney(tx: Tx, transaction: Transaction, payment: ConfirmedPayment): Promise<boolean> {
  return insertPayment(tx, {
    appId: transaction.appId,
    transactionId: transaction.id,
    provider: payment.provider,
    reference: payment.reference,
    amount: payment.amount,
    currency: payment.currency,
    paidAt: payment.paidAt,
    receivedAt: tx.now,
    refundedAt: null,
    refundReference: null,
  })
}

/** Money for a transaction that is settled already: the same payment told again rewrites the node, other money is flagged. */
async function confirmSettled(
  tx: Tx,
  app: App,
  transaction: Transaction,
  isNewMoney: boolean,
): Promise<ConfirmOutcome> {
  if (isNewMoney) {
    await saveReceived(tx, app, transaction, { flagReason: transaction.flagReason ?? 'duplicate_payment' })
  } else {
    await rewriteNode(tx, app, transaction.endUserId)
  }
  return { kind: 'already_completed', transaction: await getTransaction(tx, transaction.id) }
}

async function confirmPending(
  tx: Tx,
  app: App,
  transaction: Transaction,
  payment: ConfirmedPayment,
): Promise<ConfirmOutcome> {
  const received = await sumReceived(tx, transaction.id)
  if (received < transaction.amount) {
    await saveReceived(tx, app, transaction, { flagReason: 'underpaid', providerCode: payment.provider })
    return { kind: 'underpaid', transaction: await getTransaction(tx, transaction.id) }
  }
  await completeTransaction(tx, app, transaction, {
    providerCode: payment.provider,
    amountReceived: received,
    paidAt: payment.paidAt,
  })
  return { kind: 'processed', transaction: await getTransaction(tx, transaction.id) }
}

async function saveReceived(
  tx: Tx,
  app: App,
  transaction: Transaction,
  changes: { readonly flagReason: FlagReason; readonly providerCode?: ProviderCode },
): Promise<void> {
  const now = appNow(app, tx.now)
  const isFlaggedNow = transaction.flagReason === changes.flagReason
  await updateTransactionIn(tx, transaction.id, transaction.status, {
    ...changes,
    amountReceived: await sumReceived(tx, transaction.id),
    flaggedAt: isFlaggedNow ? transaction.flaggedAt : now,
    updatedAt: now,
  })
}

async function sumReceived(tx: Tx, transactionId: number): Promise<number> {
  const received = await listPayments(tx, transactionId)
  return received.reduce((sum, { amount }) => sum + amount, 0)
}
