import { appTime, bigint, exact, flag, id, json, realTime, text, words } from '#db/columns.ts'
import { shape, table, joinedRows, type Row } from '#db/table.ts'
import { found, notFound } from '#shared/errors.ts'
import { insertedNew } from '#db/database-error.ts'
import { following, where, type PageRequest } from '#db/conditions.ts'
import type { Queries } from '#db/queries.ts'
import { notifiedApps, type NotifiedApp } from '#apps/store.ts'
import { namedCustomers } from '#customers/store.ts'
import { namedPlans, priceIntervals } from '#plans/store.ts'
import { appliedPromotions } from '#promotions/store.ts'
import { subscriptions } from '#subscriptions/store.ts'
import type { Tx } from '#commands/transaction.ts'
import type { StoredQuote, SubscriptionRows } from '#subscriptions/decide-payment.ts'
import type { Purpose, Refusal } from '#subscriptions/lifecycle.ts'
import type { Metadata } from './metadata.ts'

export type Mode = 'subscription' | 'payment'
/** `void` is a status of the API that nothing writes. */
export type TransactionStatus = 'pending' | 'completed' | 'refunded' | 'void'
/** A provider's code, as stored with payments. `src/providers/providers.ts` lists them; this folder may not import it. */
export type ProviderCode = string
/**
 * `superseded`: the subscription changed after the payment was opened (R102). `period_guard`: the payment would have given a period that
 * the rules forbid; it was not applied (R112).
 */
export type FlagReason = 'underpaid' | 'duplicate_payment' | Refusal

/** A requested payment. Amounts in the smallest unit of `currency`; times are the app's own. */
export const transactions = table('transactions', {
  id: id(),
  appId: bigint('app_id'),
  endUserId: bigint('end_user_id'),
  externalRef: exact('external_ref', 191),
  mode: exact('mode', 16).as<Mode>(),
  planRef: exact('plan_ref', 64),
  /** The name that the payer of a one-time purchase sees instead. */
  planName: words('plan_name', 191).nullable(),
  planId: bigint('plan_id').nullable(),
  priceId: bigint('price_id').nullable(),
  customerId: bigint('customer_id').nullable(),
  /** Whether it pays a trial, so that its period is the trial's. */
  isTrial: flag('is_trial'),
  /** What it was opened for (R93). */
  purpose: exact('purpose', 16).as<Purpose | 'purchase'>(),
  /** Opened by the subscription's renewal link, so that it chooses neither a price nor a customer. */
  isByRenewalLink: flag('is_renewal'),
  /** The amount requested: the price less `discountAmount`. */
  amount: bigint('amount'),
  /** The discount of a promotion; 0 if there is none. */
  discountAmount: bigint('discount_amount'),
  /** The promotion's code. */
  promotionCode: exact('promotion_code', 40).nullable(),
  /** All money that arrived for it and was not moved away since, refunded or not. `payments/balance.ts` computes the four amounts. */
  amountReceived: bigint('amount_received'),
  /** Refunded, or being refunded. */
  amountRefunded: bigint('amount_refunded'),
  /** The part that paid for what the payer got. */
  amountUsed: bigint('amount_used'),
  /** The part that waits for a decision, if it is flagged; otherwise the surplus beyond the amount. */
  amountLeft: bigint('amount_left'),
  currency: exact('currency', 3),
  status: exact('status', 16).as<TransactionStatus>(),
  providerCode: exact('provider_code', 32).as<ProviderCode>().nullable(),
  flagReason: exact('flag_reason', 32).as<FlagReason>().nullable(),
  flaggedAt: appTime('flagged_at').nullable(),
  /** The period end that this payment was opened to renew; null if there was none. */
  renewsEnd: appTime('renews_end').nullable(),
  transferCode: exact('transfer_code', 12).nullable(),
  /** When it started to accept bank transfers. */
  bankPageOpenedAt: appTime('bank_page_opened_at').nullable(),
  createdAt: appTime('created_at'),
  completedAt: appTime('completed_at').nullable(),
  updatedAt: appTime('updated_at'),
  /** What an operator decided when it was flagged. */
  resolution: exact('resolution', 16).as<'refunded' | 'completed' | 'dismissed' | 'moved'>().nullable(),
  resolvedAt: appTime('resolved_at').nullable(),
  /** The seller's metadata; null if there is none. */
  metadata: json<Metadata>('metadata').nullable(),
})
export type Transaction = Row<typeof transactions>

/** The columns that payment pages and providers need. */
export const payableTransactions = transactions.only(
  'id',
  'appId',
  'endUserId',
  'externalRef',
  'mode',
  'planRef',
  'planName',
  'isTrial',
  'purpose',
  'isByRenewalLink',
  'amount',
  'discountAmount',
  'promotionCode',
  'amountReceived',
  'amountRefunded',
  'amountUsed',
  'amountLeft',
  'currency',
  'status',
  'providerCode',
  'transferCode',
  'bankPageOpenedAt',
  'createdAt',
  'completedAt',
)
export type PayableTransaction = Row<typeof payableTransactions>

/** A transaction as callers see it. */
export const shownTransactions = transactions.joined('t', {
  /** The part of `amountRefunded` that the provider has not confirmed yet. */
  refundPending: bigint(`IF(t.amount_refunded = 0, 0, (SELECT COALESCE(-SUM(a.amount), 0) FROM allocations a
    JOIN refunds r ON r.id = a.refund_id WHERE a.transaction_id = t.id AND a.cause = 'refund' AND r.status = 'pending'))`),
})
export type ShownTransaction = Row<typeof shownTransactions>

/** `unflagged` clears the flag that the row names. */
export type ChangeKind = 'bank_page' | 'flagged' | 'unflagged' | 'completed' | 'refunded'

/** The history of a transaction, in order. Rows are only ever added. */
export const transactionChanges = table('transaction_changes', {
  id: id(),
  appId: bigint('app_id'),
  transactionId: bigint('transaction_id'),
  at: realTime('at'),
  kind: exact('kind', 16).as<ChangeKind>(),
  flagReason: exact('flag_reason', 32).as<FlagReason>().nullable(),
  /** The operator; null if nobody decided it. */
  actor: words('actor', 191).nullable(),
  note: words('note', 500).nullable(),
})
export type TransactionChange = Row<typeof transactionChanges>

/** An event that a provider reported; unique by provider and the provider's event id. */
export const providerEvents = table('provider_events', {
  id: id(),
  provider: exact('provider', 32),
  eventId: exact('event_id', 191),
  eventType: exact('event_type', 64),
  appId: bigint('app_id').nullable(),
  transactionId: bigint('transaction_id').nullable(),
  /**
   * `applied`: its money was taken, whatever became of the purchase. `refused`: it claims a payment but does not match what was opened.
   * `noted`: it reports something else, such as a refund made there.
   */
  outcome: exact('outcome', 32).as<'applied' | 'refused' | 'noted'>(),
  note: words('note', 500).nullable(),
  receivedAt: realTime('received_at'),
})
export type ProviderEvent = Row<typeof providerEvents>

export async function insertTransaction(tx: Tx, row: Omit<Transaction, 'id'>): Promise<number> {
  return tx.insert(transactions, row)
}

export async function findTransaction(db: Queries, transactionId: number): Promise<Transaction | null> {
  return db.one(transactions, 'WHERE id = ?', [transactionId])
}

/** As callers see it; null if there is none. */
export async function findShownTransaction(db: Queries, transactionId: number): Promise<ShownTransaction | null> {
  return db.one(shownTransactions, 'WHERE t.id = ?', [transactionId])
}

/** The end user whose lock protects the transaction. This never changes. */
export async function findOwner(
  db: Queries,
  transactionId: number,
): Promise<Pick<Transaction, 'appId' | 'externalRef'> | null> {
  return db.one(
    shape({ appId: bigint(), externalRef: text() }),
    'SELECT app_id AS appId, external_ref AS externalRef FROM transactions WHERE id = ?',
    [transactionId],
  )
}

/** Throws `not_found`. */
export async function getTransaction(db: Queries, transactionId: number): Promise<Transaction> {
  return found(await findTransaction(db, transactionId), `transaction ${transactionId}`)
}

/** As callers see it. Throws `not_found`. */
export async function getShownTransaction(db: Queries, transactionId: number): Promise<ShownTransaction> {
  return found(await findShownTransaction(db, transactionId), `transaction ${transactionId}`)
}

/** What a transaction was opened for; null for a one-time purchase. */
export function quoteOf({
  id,
  mode,
  purpose,
  isTrial,
  isByRenewalLink,
  createdAt,
}: PayableTransaction): StoredQuote | null {
  if (mode === 'payment') return null
  if (purpose === 'purchase') throw new Error(`transaction ${id} is for a subscription and names no purpose`)
  // A daemon of a version without `purpose` left the column's default in a trial.
  return { purpose: isTrial ? 'trial' : purpose, isByRenewalLink, openedAt: createdAt, isAccepted: false }
}

const TRANSACTION_ROWS = joinedRows(
  `transactions transaction
   JOIN apps app ON app.id = transaction.app_id
   LEFT JOIN prices price ON price.id = transaction.price_id
   LEFT JOIN plans plan ON plan.id = price.plan_id
   LEFT JOIN subscriptions current ON current.end_user_id = transaction.end_user_id
   LEFT JOIN plans currentPlan ON currentPlan.id = current.plan_id
   LEFT JOIN customers customer ON customer.id = transaction.customer_id
   LEFT JOIN customers currentCustomer ON currentCustomer.id = current.customer_id
   LEFT JOIN promotions promotion ON promotion.app_id = transaction.app_id AND promotion.code = transaction.promotion_code`,
  { transaction: transactions, app: notifiedApps },
  {
    price: priceIntervals,
    plan: namedPlans,
    current: subscriptions,
    currentPlan: namedPlans,
    customer: namedCustomers,
    currentCustomer: namedCustomers,
    promotion: appliedPromotions,
  },
  {},
)

/** A transaction with all rows that completing it needs. */
export interface TransactionRows {
  readonly app: NotifiedApp
  readonly transaction: Transaction
  /** Null for a one-time purchase. */
  readonly forSubscription: SubscriptionRows | null
}

/** Reads the rows once, under the end user's lock, which keeps other writers out until the commit. Throws `not_found`. */
export async function getTransactionRows(tx: Tx, transactionId: number): Promise<TransactionRows> {
  const rows = await tx.one(TRANSACTION_ROWS, 'WHERE transaction.id = ?', [transactionId])
  if (!rows) throw notFound(`transaction ${transactionId}`)
  const { app, transaction, price, plan, ...rest } = rows
  const quote = quoteOf(transaction)
  if (!quote) return { app, transaction, forSubscription: null }
  if (!price || !plan) throw new Error(`transaction ${transactionId} names a price that does not exist`)
  return { app, transaction, forSubscription: { quote, price, plan, renewsEnd: transaction.renewsEnd, ...rest } }
}

/** Changes a transaction that is still in `status`; returns false otherwise. */
export async function updateTransactionIn(
  tx: Tx,
  transactionId: number,
  status: TransactionStatus,
  changes: Partial<Omit<Transaction, 'id' | 'appId'>>,
): Promise<boolean> {
  return (await tx.update(transactions, { id: transactionId, status }, changes)) === 1
}

/** Changes a transaction that was read in `status` under the end user's lock. */
export async function updateLockedTransaction(
  tx: Tx,
  transactionId: number,
  status: TransactionStatus,
  changes: Partial<Omit<Transaction, 'id' | 'appId'>>,
): Promise<void> {
  if (!(await updateTransactionIn(tx, transactionId, status, changes)))
    throw new Error(`transaction ${transactionId} was changed although it was locked`)
}

export async function insertChange(tx: Tx, row: Omit<TransactionChange, 'id' | 'at'>): Promise<void> {
  await tx.insert(transactionChanges, { ...row, at: tx.now })
}

/** The history of a transaction, the oldest first. */
export async function listChanges(db: Queries, transactionId: number): Promise<TransactionChange[]> {
  return db.all(transactionChanges, 'WHERE transaction_id = ? ORDER BY id', [transactionId])
}

/** Whether the event is new; false if the provider reported it before. */
export async function insertProviderEvent(tx: Tx, row: Omit<ProviderEvent, 'id'>): Promise<boolean> {
  return insertedNew('provider_events_provider_event', tx.insert(providerEvents, row))
}

/** Whether all of the events are new; if one is not, none is written. */
export async function insertProviderEvents(tx: Tx, rows: readonly Omit<ProviderEvent, 'id'>[]): Promise<boolean> {
  return insertedNew('provider_events_provider_event', tx.insertAll(providerEvents, rows))
}

export async function hasProviderEvent(db: Queries, provider: string, eventId: string): Promise<boolean> {
  return (await db.count(providerEvents, 'WHERE provider = ? AND event_id = ?', [provider, eventId])) > 0
}

/** What providers reported about a transaction, the oldest first. */
export async function listProviderEvents(db: Queries, transactionId: number): Promise<ProviderEvent[]> {
  return db.all(providerEvents, 'WHERE transaction_id = ? ORDER BY id', [transactionId])
}

/** Provider events that paid nothing, newest first. */
export async function listUnappliedEvents(
  db: Queries,
  filter: PageRequest & { readonly appId: number | null },
): Promise<ProviderEvent[]> {
  const { appId, after, limit } = filter
  const unapplied = where(
    [`outcome IN ('refused', 'noted')`],
    appId === null ? null : ['app_id = ?', appId],
    following(after, ['received_at', 'id'], 'desc'),
  )
  const inOrder = `${unapplied.sql} ORDER BY received_at DESC, id DESC LIMIT ?`
  return db.all(providerEvents, inOrder, [...unapplied.params, limit])
}
