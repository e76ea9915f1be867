import type { Context } from '#context.ts'
import { provider } from '#commands/caller.ts'
import { command, nothing } from '#commands/command.ts'
import { perform } from '#commands/perform.ts'
import type { Tx } from '#commands/transaction.ts'
import { allocate, insertPayment, lockPaymentOf, updatePayment, type Payment } from '#payments/store.ts'
import { rewriteNode } from '#subscriptions/queue-node.ts'
import { lockExistingEndUser } from '#subscriptions/store.ts'
import type { RealTime } from '#shared/time.ts'
import type { OperatorDecision } from './change-transaction.ts'
import { receiveMoney } from './complete-transaction.ts'
import {
  findOwner,
  getSale,
  insertProviderEvent,
  insertProviderEvents,
  type ProviderCode,
  type ProviderEvent,
  type Transaction,
} from './store.ts'

/** Money that arrived according to a provider, a bank or an operator. Callers have verified the report. */
export interface ConfirmedPayment {
  readonly provider: ProviderCode
  /** The provider's own id of the notification; null if there is none (a look-up, the test method). */
  readonly eventId: string | null
  readonly eventType?: string
  /** Another id of the same notification: the notification is a repetition if either was recorded before. */
  readonly otherEvent?: Pick<ProviderEvent, 'eventId' | 'eventType'> | null
  /** The version of the credentials under which it arrived; absent if a provider needs none. */
  readonly providerAccountId?: number
  /** The provider's own id of the money: unique by provider. */
  readonly reference: string
  /** The provider's id of the charge, if that is not the reference. */
  readonly chargeReference?: string | null
  /** Our account that it was credited to, if the bank shows it. */
  readonly bankAccountId?: number | null
  readonly transactionId: number
  /** The transaction's app and end user, if the caller has read them: they never change. */
  readonly owner?: Pick<Transaction, 'appId' | 'externalRef'>
  /** In the smallest unit of `currency`. */
  readonly amount: number
  readonly currency: string
  /** When it was paid, in real time, if the provider is reliable there; else when it was received. */
  readonly paidAt: RealTime
  /** The operator who assigned the money to the transaction; absent if the provider or the payer did. */
  readonly decision?: OperatorDecision
}

export type ConfirmOutcome =
  | {
      readonly kind: 'processed' | 'underpaid' | 'already_completed'
      readonly transaction: Transaction
      /** The id of the payment; null if the same money was reported before. */
      readonly paymentId: number | null
      /** Whether the money had been recorded as unmatched before. */
      readonly hadWaited: boolean
    }
  | { readonly kind: 'duplicate' }
  | { readonly kind: 'unknown_transaction' | 'wrong_currency' }

/**
 * The entry point for money (R91): everything that confirms a payment calls this. It works in one database transaction, under the end
 * user's lock. It records the provider's event and the payment, books the money for the transaction, completes and applies the transaction,
 * and writes the events to send. It sends nothing itself. `duplicate`: this event or this money was recorded before, and nothing was
 * changed.
 */
export async function confirmPayment(ctx: Context, payment: ConfirmedPayment): Promise<ConfirmOutcome> {
  return perform(ctx, provider(payment.provider), confirm, undefined, payment)
}

const confirm = command({
  name: 'payment.confirm',
  input: nothing,
  run: (tx, _input, payment: ConfirmedPayment) => bookPayment(tx, payment),
})

/** The steps of `confirmPayment`, for a command that writes more in the same transaction. Reports the outcome after the commit. */
export async function bookPayment(tx: Tx, payment: ConfirmedPayment): Promise<ConfirmOutcome> {
  const outcome = await book(tx, payment)
  tx.afterCommit(() => report(tx.ctx, payment, outcome))
  return outcome
}

async function book(tx: Tx, payment: ConfirmedPayment): Promise<ConfirmOutcome> {
  const owner = payment.owner ?? (await findOwner(tx, payment.transactionId))
  if (!owner) return { kind: 'unknown_transaction' }
  if (!(await recordEvents(tx, payment, owner.appId))) return { kind: 'duplicate' }
  await lockExistingEndUser(tx, owner.appId, owner.externalRef)
  const sale = await getSale(tx, payment.transactionId)
  const { app, transaction } = sale
  if (payment.currency !== transaction.currency) return { kind: 'wrong_currency' }
  const recorded = await recordPayment(tx, transaction, payment)
  if (recorded) return { ...(await receiveMoney(tx, sale, payment)), ...recorded }
  if (transaction.status === 'pending') return { kind: 'duplicate' }
  // The same payment under another event: the daemon that took the first may have died before it wrote the node.
  await rewriteNode(tx, app, transaction.endUserId)
  return { kind: 'already_completed', transaction, paymentId: null, hadWaited: false }
}

async function recordEvents(tx: Tx, payment: ConfirmedPayment, appId: number): Promise<boolean> {
  const { provider, eventId, eventType = 'payment', otherEvent, transactionId } = payment
  if (eventId === null) return true
  const applied = { provider, appId, transactionId, outcome: 'applied', note: null, receivedAt: tx.now }
  const event = { ...applied, eventId, eventType }
  return otherEvent ? insertProviderEvents(tx, [{ ...applied, ...otherEvent }, event]) : insertProviderEvent(tx, event)
}

/**
 * Records the payment and books all of it for the transaction. Unmatched money that is reported again with its transaction is booked
 * now. Null if nothing of it is left to be booked.
 */
async function recordPayment(
  tx: Tx,
  transaction: Transaction,
  payment: ConfirmedPayment,
): Promise<{ readonly paymentId: number; readonly hadWaited: boolean } | null> {
  const { amount, decision = null } = payment
  const added = await insertPayment(tx, rowOf(tx, transaction, payment))
  const paymentId = added ?? (await takeWaiting(tx, transaction, payment))
  if (paymentId === null) return null
  await allocate(tx, transaction, { paymentId, amount, cause: decision ? 'matched' : 'booked', decision })
  return { paymentId, hadWaited: added === null }
}

function rowOf(tx: Tx, { appId, endUserId }: Transaction, payment: ConfirmedPayment): Omit<Payment, 'id'> {
  const { provider, reference, amount, currency, paidAt } = payment
  return {
    appId,
    endUserId,
    provider,
    providerAccountId: payment.providerAccountId ?? null,
    bankAccountId: payment.bankAccountId ?? null,
    reference,
    chargeReference: payment.chargeReference ?? null,
    amount,
    amountLeft: 0,
    currency,
    paidAt,
    receivedAt: tx.now,
    closedAt: null,
  }
}

/** Takes money that was recorded before and waits for its transaction; its id, or null if some of it was booked or refunded. */
async function takeWaiting(
  tx: Tx,
  { appId, endUserId }: Transaction,
  { provider, reference, amount }: ConfirmedPayment,
): Promise<number | null> {
  const waiting = await lockPaymentOf(tx, provider, reference)
  if (!waiting || !isUntouched(waiting)) return null
  await updatePayment(tx, waiting.id, { appId, endUserId, amount, amountLeft: 0, closedAt: null })
  return waiting.id
}

/** Whether nothing of a payment was booked or refunded yet. */
function isUntouched({ amount, amountLeft }: { amount: number | null; amountLeft: number | null }): boolean {
  return amount === null || amountLeft === amount
}

/** Counts and logs the outcome of a payment. */
function report(ctx: Context, payment: ConfirmedPayment, outcome: ConfirmOutcome): void {
  const { provider, transactionId } = payment
  ctx.count('payments_total', { provider, outcome: outcome.kind })
  ctx.log.info({ provider, outcome: outcome.kind, transactionId }, 'a payment was reported')
  const reason = 'transaction' in outcome ? outcome.transaction.flagReason : null
  if (reason) {
    ctx.count('payments_flagged_total', { reason })
    ctx.log.warn({ transactionId, reason }, 'a payment needs an operator: transaction resolve')
  }
}
