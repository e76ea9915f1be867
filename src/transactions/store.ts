import { EntitySchema, In } from 'typeorm'
import { bigint, exact, flag, id, instant, nullable, words } from '#db/columns.ts'
import { insertedId, insertedNew } from '#db/transaction.ts'
import type { ReadOnly, Tx } from '#db/transaction.ts'

export type Mode = 'subscription' | 'payment'
export type TransactionStatus = 'pending' | 'completed' | 'refunded' | 'void'
export type ProviderCode = 'stripe' | 'payos' | 'bank_transfer' | 'test'
/** `period_guard`: the payment would have given a period that no rule allows; it was not applied (contract 4, Period guard). */
export type FlagReason = 'underpaid' | 'already_lifetime' | 'trial_already_used' | 'duplicate_payment' | 'period_guard'

/** One payment that is asked for. Amounts in the smallest unit of `currency`; times are the app's own. */
export interface Transaction {
  id: number
  appId: number
  endUserId: number
  externalRef: string
  mode: Mode
  planRef: string
  planId: number | null
  priceId: number | null
  customerId: number | null
  /** Whether it pays a trial, so that its period is the trial's. */
  isTrial: boolean
  amount: number
  amountReceived: number
  currency: string
  status: TransactionStatus
  providerCode: ProviderCode | null
  flagReason: FlagReason | null
  flaggedAt: Date | null
  /** The period end that this payment was opened to renew; null where there was none. */
  renewsEnd: Date | null
  transferCode: string | null
  /** From then on it takes bank transfers. */
  bankPageOpenedAt: Date | null
  createdAt: Date
  completedAt: Date | null
  updatedAt: Date
  /** What an operator decided when it was flagged. */
  resolution: 'refunded' | 'completed' | 'dismissed' | null
  resolvedAt: Date | null
}

export const transactions = new EntitySchema<Transaction>({
  name: 'transactions',
  columns: {
    id,
    appId: bigint('app_id'),
    endUserId: bigint('end_user_id'),
    externalRef: exact('external_ref', 191),
    mode: exact('mode', 16),
    planRef: exact('plan_ref', 64),
    planId: nullable(bigint('plan_id')),
    priceId: nullable(bigint('price_id')),
    customerId: nullable(bigint('customer_id')),
    isTrial: flag('is_trial'),
    amount: bigint('amount'),
    amountReceived: bigint('amount_received'),
    currency: exact('currency', 3),
    status: exact('status', 16),
    providerCode: nullable(exact('provider_code', 32)),
    flagReason: nullable(exact('flag_reason', 32)),
    flaggedAt: nullable(instant('flagged_at')),
    renewsEnd: nullable(instant('renews_end')),
    transferCode: nullable(exact('transfer_code', 12)),
    bankPageOpenedAt: nullable(instant('bank_page_opened_at')),
    createdAt: instant('created_at'),
    completedAt: nullable(instant('completed_at')),
    updatedAt: instant('updated_at'),
    resolution: nullable(exact('resolution', 16)),
    resolvedAt: nullable(instant('resolved_at')),
  },
})

/** Money that arrived, from wherever; unique by provider and the provider's reference. */
export interface Payment {
  id: number
  appId: number
  transactionId: number
  provider: ProviderCode
  reference: string
  amount: number
  currency: string
  paidAt: Date
  receivedAt: Date
  refundedAt: Date | null
  refundReference: string | null
}

export const payments = new EntitySchema<Payment>({
  name: 'payments',
  columns: {
    id,
    appId: bigint('app_id'),
    transactionId: bigint('transaction_id'),
    provider: exact('provider', 32),
    reference: exact('reference', 191),
    amount: bigint('amount'),
    currency: exact('currency', 3),
    paidAt: instant('paid_at'),
    receivedAt: instant('received_at'),
    refundedAt: nullable(instant('refunded_at')),
    refundReference: nullable(exact('refund_reference', 191)),
  },
})

/** What a provider told us, once: unique by provider and the provider's event id. */
export interface ProviderEvent {
  id: number
  provider: string
  eventId: string
  eventType: string
  appId: number | null
  transactionId: number | null
  /** `applied`, `refused` (told something that does not fit), `noted` (for operators to see). */
  outcome: string
  note: string | null
  receivedAt: Date
}

export const providerEvents = new EntitySchema<ProviderEvent>({
  name: 'provider_events',
  columns: {
    id,
    provider: exact('provider', 32),
    eventId: exact('event_id', 191),
    eventType: exact('event_type', 64),
    appId: nullable(bigint('app_id')),
    transactionId: nullable(bigint('transaction_id')),
    outcome: exact('outcome', 32),
    note: nullable(words('note', 500)),
    receivedAt: instant('received_at'),
  },
})

export async function insertTransaction(tx: Tx, row: Omit<Transaction, 'id'>): Promise<number> {
  const result = await tx.manager.insert(transactions, row)
  return insertedId(result)
}

export async function findTransaction(db: ReadOnly, transactionId: number): Promise<Transaction | null> {
  return db.manager.findOneBy(transactions, { id: transactionId })
}

export interface TransactionFilter {
  /** Null: of all apps. */
  readonly appId: number | null
  readonly externalRef: string | null
  readonly status: TransactionStatus | null
  readonly flagged: boolean | null
  readonly below: { readonly createdAt: Date; readonly id: number } | null
  readonly limit: number
}

/** Transactions, newest first. */
export async function listTransactionRows(db: ReadOnly, filter: TransactionFilter): Promise<Transaction[]> {
  const query = db.manager
    .createQueryBuilder(transactions, 't')
    .orderBy('t.createdAt', 'DESC')
    .addOrderBy('t.id', 'DESC')
  if (filter.appId !== null) query.andWhere('t.appId = :appId', { appId: filter.appId })
  if (filter.externalRef !== null) query.andWhere('t.externalRef = :externalRef', { externalRef: filter.externalRef })
  if (filter.status !== null) query.andWhere('t.status = :status', { status: filter.status })
  if (filter.flagged !== null) query.andWhere(`t.flagReason IS ${filter.flagged ? 'NOT ' : ''}NULL`)
  if (filter.below) {
    const { createdAt, id: belowId } = filter.below
    query.andWhere('(t.createdAt < :createdAt OR (t.createdAt = :createdAt AND t.id < :belowId))', {
      createdAt,
      belowId,
    })
  }
  return query.limit(filter.limit).getMany()
}

export async function findTransactionByTransferCode(db: ReadOnly, transferCode: string): Promise<Transaction | null> {
  return db.manager.findOneBy(transactions, { transferCode })
}

/** Changes a transaction that is still in `status`; false where it is not, any more. */
export async function updateTransactionIn(
  tx: Tx,
  transactionId: number,
  status: TransactionStatus,
  changes: Partial<Omit<Transaction, 'id' | 'appId'>>,
): Promise<boolean> {
  const result = await tx.manager.update(transactions, { id: transactionId, status }, changes)
  return result.affected === 1
}

/** Whether the payment is new; false where this provider reported this reference before. */
export async function insertPayment(tx: Tx, row: Omit<Payment, 'id'>): Promise<boolean> {
  return insertedNew('payments_provider_reference', tx.manager.insert(payments, row))
}

export async function listPayments(db: ReadOnly, transactionId: number): Promise<Payment[]> {
  return db.manager.find(payments, { where: { transactionId }, order: { id: 'ASC' } })
}

export async function markPaymentRefunded(tx: Tx, paymentId: number, refundReference: string): Promise<boolean> {
  const result = await tx.manager.query<{ affectedRows: number }>(
    'UPDATE payments SET refunded_at = ?, refund_reference = ? WHERE id = ? AND refunded_at IS NULL',
    [tx.now, refundReference, paymentId],
  )
  return result.affectedRows === 1
}

/** Whether the event is new; false where the provider told it before. */
export async function insertProviderEvent(tx: Tx, row: Omit<ProviderEvent, 'id'>): Promise<boolean> {
  return insertedNew('provider_events_provider_event', tx.manager.insert(providerEvents, row))
}

export async function hasProviderEvent(db: ReadOnly, provider: string, eventId: string): Promise<boolean> {
  return db.manager.existsBy(providerEvents, { provider, eventId })
}

/** What providers told about a transaction, the first first. */
export async function listProviderEvents(db: ReadOnly, transactionId: number): Promise<ProviderEvent[]> {
  return db.manager.find(providerEvents, { where: { transactionId }, order: { id: 'ASC' } })
}

/** What a sound ledger never shows: a sentence, and the query that finds whom it is true of. */
const LEDGER_RULES: readonly { readonly subject: string; readonly fault: string; readonly sql: string }[] = [
  {
    subject: 'transaction',
    fault: 'is completed, and has neither an effect nor a flag',
    sql: `SELECT x.id FROM transactions x LEFT JOIN payment_applications a ON a.transaction_id = x.id
          WHERE x.status = 'completed' AND x.mode = 'subscription' AND a.id IS NULL AND x.flag_reason IS NULL AND x.resolution IS NULL`,
  },
  {
    subject: 'transaction',
    fault: 'is not completed, and has an effect',
    sql: `SELECT x.id FROM transactions x JOIN payment_applications a ON a.transaction_id = x.id
          WHERE x.status NOT IN ('completed', 'refunded')`,
  },
  {
    subject: 'transaction',
    fault: 'is a completed one-time payment, and has not exactly one event transaction.completed',
    sql: `SELECT x.id FROM transactions x
          LEFT JOIN events e ON e.transaction_id = x.id AND e.event_type = 'transaction.completed'
          WHERE x.status = 'completed' AND x.mode = 'payment' GROUP BY x.id HAVING COUNT(e.id) <> 1`,
  },
  {
    subject: 'transaction',
    fault: 'received another sum than its payments are',
    sql: `SELECT x.id FROM transactions x LEFT JOIN payments p ON p.transaction_id = x.id
          WHERE 1 = 1 GROUP BY x.id, x.amount_received HAVING COALESCE(SUM(p.amount), 0) <> x.amount_received`,
  },
  {
    subject: 'transaction',
    fault: 'is pending, and all of its amount was received',
    sql: `SELECT x.id FROM transactions x WHERE x.status = 'pending' AND x.amount_received >= x.amount`,
  },
  {
    subject: 'subscription',
    fault: 'has not one event subscription.updated for each of its changes',
    sql: `SELECT x.id FROM subscriptions x
          LEFT JOIN events e ON e.app_id = x.app_id AND e.external_ref = x.external_ref AND e.event_type = 'subscription.updated'
          WHERE 1 = 1 GROUP BY x.id, x.revision HAVING COUNT(e.id) <> x.revision`,
  },
  {
    subject: 'event',
    fault: 'waits to be sent, and is never due',
    sql: `SELECT x.id FROM events x WHERE x.delivery_status = 'pending' AND x.next_attempt_at IS NULL AND x.lease_until IS NULL`,
  },
]

/** Where the books do not add up; `appId` null looks at all apps. */
export async function findLedgerFaults(
  db: ReadOnly,
  appId: number | null,
): Promise<{ subject: string; fault: string }[]> {
  const faults: { subject: string; fault: string }[] = []
  for (const { subject, fault, sql } of LEDGER_RULES) {
    const ofApp = appId === null ? sql : sql.replace('WHERE ', 'WHERE x.app_id = ? AND ')
    const rows = await db.manager.query<{ id: string | number }[]>(ofApp, appId === null ? [] : [appId])
    faults.push(...rows.map(({ id: rowId }) => ({ subject: `${subject} ${rowId}`, fault })))
  }
  return faults
}

/** What providers told that paid nothing: `refused` (it does not fit what was opened) or `noted` (such as a refund made there). Newest first. */
export async function listNotedEvents(
  db: ReadOnly,
  filter: { readonly appId: number | null; readonly outcomes: readonly string[]; readonly limit: number },
): Promise<ProviderEvent[]> {
  const where = { outcome: In([...filter.outcomes]), ...(filter.appId === null ? {} : { appId: filter.appId }) }
  return db.manager.find(providerEvents, { where, order: { receivedAt: 'DESC', id: 'DESC' }, take: filter.limit })
}
