import type { Context } from '#context.ts'
import { command, nothing } from '#commands/command.ts'
import type { OperatorNote } from '#commands/operator-note.ts'
import type { Tx } from '#commands/transaction.ts'
import { allocate, insertPayment, lockPaymentOf, updatePayment, type Payment } from '#payments/store.ts'
import { rewriteNode } from '#subscriptions/queue-node.ts'
import { lockEndUserOf } from '#subscriptions/store.ts'
import type { RealTime } from '#shared/time.ts'
import { receiveMoney, type Received } from './complete-transaction.ts'
import {
  getTransactionRows,
  insertProviderEvents,
  transactions,
  type ProviderCode,
  type ProviderEvent,
  type Transaction,
} from './store.ts'

/** Money that arrived according to a provider, a bank or an operator. Callers have verified the report. */
export interface ConfirmedPayment {
  readonly provider: ProviderCode
  /** The provider's events that report it; empty for look-ups and the test method. If one is recorded already, the report is a duplicate. */
  readonly events: readonly Pick<ProviderEvent, 'eventId' | 'eventType'>[]
  /** The account version under which it arrived; absent if a provider needs none. */
  readonly providerAccountId?: number
  /** The provider's own id of the money: unique by provider. */
  readonly reference: string
  /** The provider's id of the charge, if that is not the reference. */
  readonly chargeReference?: string | null
  /** Our account that it was credited to, if the bank shows it. */
  readonly bankAccountId?: number | null
  readonly transactionId: number
  /** In the smallest unit of `currency`. */
  readonly amount: number
  readonly currency: string
  /** The provider's payment time if reliable, otherwise the time of receipt; real time. */
  readonly paidAt: RealTime
  /** Of the operator who assigned the money to the transaction; absent if the provider or the payer did. */
  readonly operatorNote?: OperatorNote
}

export type ConfirmOutcome =
  | (Received & Recorded)
  /** One of its events was recorded before, or the same money for a transaction that waits for the rest. Nothing else changes. */
  | { readonly kind: 'duplicate' }
  /** The same money was recorded before, under another event, and the transaction is complete: its node is written again. */
  | { readonly kind: 'known_money' }
  | { readonly kind: 'unknown_transaction' | 'wrong_currency' }

/** A payment that is recorded and allocated to the transaction. */
export interface Recorded {
  readonly paymentId: number
  /** Whether it had been recorded before, without a transaction. */
  readonly wasUnallocated: boolean
  /** When it was paid, as it was recorded first: a later report of the same money makes it no later. */
  readonly paidAt: RealTime
}

/**
 * The entry point for money (R91): everything that confirms a payment calls this in its command. Under the end user's lock it records the
 * provider's events and the payment, allocates the payment, completes and applies the transaction, and writes the webhooks to send. Reports
 * the outcome after the commit. Only an outcome with a `paymentId` records money.
 */
export async function confirmPayment(tx: Tx, payment: ConfirmedPayment): Promise<ConfirmOutcome> {
  const outcome = await confirmUnderLock(tx, payment)
  tx.afterCommit(() => report(tx.ctx, payment, outcome))
  return outcome
}

/** The command of a caller that writes nothing else and does not need the outcome: by its reference, money is recorded only once. */
export const confirmPaymentCommand = command({
  name: 'payment.confirm',
  input: nothing,
  isRepeatable: true,
  async run(tx, _input, payment: ConfirmedPayment): Promise<void> {
    await confirmPayment(tx, payment)
  },
})

async function confirmUnderLock(tx: Tx, payment: ConfirmedPayment): Promise<ConfirmOutcome> {
  if (!(await lockEndUserOf(tx, transactions, payment.transactionId))) return { kind: 'unknown_transaction' }
  const rows = await getTransactionRows(tx, payment.transactionId)
  const { app, transaction } = rows
  if (payment.currency !== transaction.currency) return { kind: 'wrong_currency' }
  if (!(await recordEvents(tx, transaction, payment))) return { kind: 'duplicate' }
  const recorded = await recordPayment(tx, transaction, payment)
  if (recorded) return { ...(await receiveMoney(tx, rows, { ...payment, paidAt: recorded.paidAt })), ...recorded }
  if (transaction.status === 'pending') return { kind: 'duplicate' }
  // The same payment under another event: the daemon that took the first may have died before it wrote the node.
  await rewriteNode(tx, app, transaction.endUserId)
  return { kind: 'known_money' }
}

/** False if one of the events was recorded before. */
async function recordEvents(
  tx: Tx,
  { id: transactionId, appId }: Transaction,
  { provider, events }: ConfirmedPayment,
): Promise<boolean> {
  const applied = { provider, appId, transactionId, outcome: 'applied', note: null, receivedAt: tx.now } as const
  return insertProviderEvents(
    tx,
    events.map((event) => ({ ...applied, ...event })),
  )
}

/**
 * Records the payment and allocates all of it to the transaction. Unallocated money that is reported again with its transaction is
 * allocated now. Null if some of it is allocated or refunded already.
 */
async function recordPayment(tx: Tx, transaction: Transaction, payment: ConfirmedPayment): Promise<Recorded | null> {
  const { amount, paidAt, operatorNote = null } = payment
  const paymentId = await insertPayment(tx, paymentRow(tx, transaction, payment))
  const recorded =
    paymentId === null ? await takeUnallocated(tx, transaction, payment) : { paymentId, wasUnallocated: false, paidAt }
  if (!recorded) return null
  const cause = operatorNote ? 'matched' : 'booked'
  await allocate(tx, transaction, { paymentId: recorded.paymentId, amount, cause, operatorNote })
  return recorded
}

/** A new payment, with nothing left: all of it is allocated to the transaction. */
function paymentRow(tx: Tx, { appId, endUserId }: Transaction, payment: ConfirmedPayment): Omit<Payment, 'id'> {
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

/** Takes a payment that was recorded without a transaction. Null if any of it is already allocated or refunded. */
async function takeUnallocated(
  tx: Tx,
  { appId, endUserId }: Transaction,
  { provider, reference, amount }: ConfirmedPayment,
): Promise<Recorded | null> {
  const recorded = await lockPaymentOf(tx, provider, reference)
  if (!recorded || !isUnallocated(recorded)) return null
  // The amount is new only if it was unknown, as that of a bank's mail that no reader understood.
  await updatePayment(tx, recorded.id, { appId, endUserId, amount, amountLeft: 0, closedAt: null })
  return { paymentId: recorded.id, wasUnallocated: true, paidAt: recorded.paidAt }
}

function isUnallocated({ amount, amountLeft }: Payment): boolean {
  return amount === null || amountLeft === amount
}

/** Counts and logs the outcome of a payment. */
function report(ctx: Context, payment: ConfirmedPayment, outcome: ConfirmOutcome): void {
  const { provider, transactionId } = payment
  ctx.count('payments_total', { provider, outcome: outcome.kind })
  ctx.log.info({ provider, outcome: outcome.kind, transactionId }, 'a payment was reported')
  const reason = 'paymentId' in outcome ? outcome.transaction.flagReason : null
  if (reason) {
    ctx.count('payments_flagged_total', { reason })
    ctx.log.warn({ transactionId, reason }, 'a payment needs an operator: transaction resolve')
  }
}
