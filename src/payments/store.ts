import { bigint, exact, flag, id, int, realTime, words } from '#db/columns.ts'
import { following, where } from '#db/conditions.ts'
import { unlessDuplicate } from '#db/database-error.ts'
import type { Queries } from '#db/queries.ts'
import { shape, table, type Row } from '#db/table.ts'
import type { OperatorNote } from '#commands/operator-note.ts'
import type { Tx } from '#commands/transaction.ts'
import type { RealTime } from '#shared/time.ts'

/**
 * Money that arrived; unique by provider and the provider's reference. Amounts in the smallest unit of `currency`; times are real.
 */
export const payments = table('payments', {
  id: id(),
  /** Null until the app is known. */
  appId: bigint('app_id').nullable(),
  endUserId: bigint('end_user_id').nullable(),
  /** `stripe`, `payos`, `bank_transfer`, `test` */
  provider: exact('provider', 32),
  /** The version of the app's credentials under which it arrived; null if a provider needs none. */
  providerAccountId: bigint('provider_account_id').nullable(),
  /** The account that it was credited to; null if it came another way, or the mail does not name one. */
  bankAccountId: bigint('bank_account_id').nullable(),
  reference: exact('reference', 191),
  /** The provider's id of the charge, if that is not the reference: Stripe's payment intent. */
  chargeReference: exact('charge_reference', 191).nullable(),
  /** Null until an operator enters it, if Paygate cannot read the mail. */
  amount: bigint('amount').nullable(),
  /** What is neither allocated nor refunded; null exactly if `amount` is. */
  amountLeft: bigint('amount_left').nullable(),
  currency: exact('currency', 3),
  paidAt: realTime('paid_at'),
  receivedAt: realTime('received_at'),
  /** When an operator decided that the money left needs no action. */
  closedAt: realTime('closed_at').nullable(),
})
export type Payment = Row<typeof payments>

/**
 * `booked`: a provider or a bank reported it. `matched`, `moved`: an operator decided it. `refund`: a refund took it back.
 * `refund_failed`: that refund failed.
 */
export type AllocationCause = 'booked' | 'matched' | 'moved' | 'refund' | 'refund_failed'

/** Money of a payment that counts for a transaction or, if negative, no longer does. Rows are only ever added. */
export const allocations = table('allocations', {
  id: id(),
  appId: bigint('app_id'),
  paymentId: bigint('payment_id'),
  transactionId: bigint('transaction_id'),
  /** The refund that took it back, or that failed. */
  refundId: bigint('refund_id').nullable(),
  amount: bigint('amount'),
  cause: exact('cause', 16).as<AllocationCause>(),
  /** Null if no operator decided it. */
  actor: words('actor', 191).nullable(),
  note: words('note', 500).nullable(),
  at: realTime('at'),
})
export type Allocation = Row<typeof allocations>

export type RefundStatus = 'pending' | 'succeeded' | 'failed'

/** Money that is refunded to the payer. The row is committed before the provider is called. */
export const refunds = table('refunds', {
  id: id(),
  appId: bigint('app_id').nullable(),
  paymentId: bigint('payment_id'),
  amount: bigint('amount'),
  status: exact('status', 16).as<RefundStatus>(),
  /** The provider's reference, or that of a manual transfer; null until the provider has answered, and if no money moved. */
  reference: exact('reference', 191).nullable(),
  /** Why it failed. */
  failure: words('failure', 191).nullable(),
  /** How much of it had paid for what the payer got, and the flag that it cleared. Both are restored if the provider refuses it. */
  amountUsed: bigint('amount_used'),
  flagReason: exact('flag_reason', 32).nullable(),
  /** Null if it was made at the provider. */
  actor: words('actor', 191).nullable(),
  note: words('note', 500).nullable(),
  /** How often the provider answered with a failure of its own: each further try has its own idempotency key. */
  attempts: int('attempts'),
  nextLookupAt: realTime('next_lookup_at').nullable(),
  createdAt: realTime('created_at'),
  endedAt: realTime('ended_at').nullable(),
})
export type Refund = Row<typeof refunds>

/** The id of the new payment; null if this provider reported this reference before. */
export async function insertPayment(tx: Tx, row: Omit<Payment, 'id'>): Promise<number | null> {
  return unlessDuplicate('payments_provider_reference', tx.insert(payments, row))
}

export async function findPayment(db: Queries, paymentId: number): Promise<Payment | null> {
  return db.one(payments, 'WHERE id = ?', [paymentId])
}

/** The payment, locked until the commit. */
export async function lockPayment(tx: Tx, paymentId: number): Promise<Payment | null> {
  return tx.one(payments, 'WHERE id = ? FOR UPDATE', [paymentId])
}

/** As `lockPayment`, by the provider's reference. */
export async function lockPaymentOf(tx: Tx, provider: string, reference: string): Promise<Payment | null> {
  return tx.one(payments, 'WHERE provider = ? AND reference = ? FOR UPDATE', [provider, reference])
}

/** The sum of a provider's payments whose references begin with `start`, and whether the payment `named` is among them. */
export async function sumOfPayments(
  db: Queries,
  provider: string,
  { start, named }: { readonly start: string; readonly named: string },
): Promise<{ readonly sum: number; readonly hasNamed: boolean }> {
  return db.single(
    shape({ sum: bigint(), hasNamed: flag() }),
    `SELECT COALESCE(SUM(amount), 0) AS sum, COALESCE(MAX(reference = ?), 0) AS hasNamed
     FROM payments WHERE provider = ? AND reference LIKE ?`,
    [named, provider, `${start.replaceAll(/[\\%_]/g, '\\$&')}%`],
  )
}

/** The payment of a charge; null if there is none. */
export async function findPaymentOfCharge(db: Queries, provider: string, charge: string): Promise<Payment | null> {
  return db.one(payments, 'WHERE charge_reference = ? AND provider = ?', [charge, provider])
}

export async function updatePayment(
  tx: Tx,
  paymentId: number,
  changes: Partial<Omit<Payment, 'id' | 'provider' | 'reference'>>,
): Promise<void> {
  await tx.update(payments, { id: paymentId }, changes)
}

/** A payment that was allocated to a transaction, with the amount that still is. */
const bookedPayments = payments.joined('p', { kept: bigint('SUM(a.amount)') })
export type BookedPayment = Row<typeof bookedPayments>

/** The payments that were allocated to a transaction, the oldest first; `kept` is 0 if all was moved or refunded. */
export async function listPaymentsOf(db: Queries, transactionId: number): Promise<BookedPayment[]> {
  return db.all(
    bookedPayments,
    'JOIN allocations a ON a.payment_id = p.id WHERE a.transaction_id = ? GROUP BY p.id ORDER BY p.id',
    [transactionId],
  )
}

/** Money of a payment that counts for a transaction from now on, or no longer does. */
export interface Allocated {
  readonly paymentId: number
  /** Negative if the money no longer counts. */
  readonly amount: number
  readonly cause: AllocationCause
  /** The refund that takes it back, or that failed. */
  readonly refundId?: number
  /** The operator who decided it; null if nobody did. */
  readonly operatorNote: OperatorNote | null
}

export async function allocate(
  tx: Tx,
  { id: transactionId, appId }: { readonly id: number; readonly appId: number },
  { paymentId, amount, cause, refundId, operatorNote }: Allocated,
): Promise<void> {
  const { actor, note } = operatorNote ?? { actor: null, note: null }
  const row = { appId, paymentId, transactionId, refundId: refundId ?? null, amount, cause, actor, note, at: tx.now }
  await tx.insert(allocations, row)
}

export async function listAllocationsOfPayment(db: Queries, paymentId: number): Promise<Allocation[]> {
  return db.all(allocations, 'WHERE payment_id = ? ORDER BY id', [paymentId])
}

export async function listAllocationsOfTransaction(db: Queries, transactionId: number): Promise<Allocation[]> {
  return db.all(allocations, 'WHERE transaction_id = ? ORDER BY id', [transactionId])
}

/** The amount each transaction holds of a payment, without zeros. */
export async function listKeptOfPayment(
  db: Queries,
  paymentId: number,
): Promise<{ readonly transactionId: number; readonly kept: number }[]> {
  return db.all(
    shape({ transactionId: bigint(), kept: bigint() }),
    `SELECT transaction_id AS transactionId, SUM(amount) AS kept FROM allocations WHERE payment_id = ?
     GROUP BY transaction_id HAVING SUM(amount) > 0 ORDER BY transaction_id`,
    [paymentId],
  )
}

/** The amounts of a refund, by transaction. */
export async function listRefundedShares(
  db: Queries,
  refundId: number,
): Promise<{ readonly transactionId: number; readonly amount: number }[]> {
  return db.all(
    shape({ transactionId: bigint(), amount: bigint() }),
    `SELECT transaction_id AS transactionId, -SUM(amount) AS amount FROM allocations WHERE refund_id = ? AND cause = 'refund'
     GROUP BY transaction_id ORDER BY transaction_id`,
    [refundId],
  )
}

/** The id of the new refund; null if the payment already has one with this reference. */
export async function insertRefund(tx: Tx, row: Omit<Refund, 'id'>): Promise<number | null> {
  return unlessDuplicate('refunds_payment_reference', tx.insert(refunds, row))
}

/** As `findRefund`, under a lock of its row. */
export async function lockRefund(tx: Tx, refundId: number): Promise<Refund | null> {
  return tx.one(refunds, 'WHERE id = ? FOR UPDATE', [refundId])
}

export async function findRefund(db: Queries, refundId: number): Promise<Refund | null> {
  return db.one(refunds, 'WHERE id = ?', [refundId])
}

export async function findRefundOf(db: Queries, paymentId: number, reference: string): Promise<Refund | null> {
  return db.one(refunds, 'WHERE payment_id = ? AND reference = ?', [paymentId, reference])
}

export async function listRefundsOfPayment(db: Queries, paymentId: number): Promise<Refund[]> {
  return db.all(refunds, 'WHERE payment_id = ? ORDER BY id', [paymentId])
}

/** The refunds of a transaction's money, the oldest first; `taken` is the amount that each took from this transaction. */
export async function listRefundsOfTransaction(
  db: Queries,
  transactionId: number,
): Promise<(Refund & { readonly taken: number; readonly provider: string })[]> {
  return db.all(
    refunds.joined('r', { taken: bigint('-SUM(a.amount)'), provider: exact('p.provider', 32) }),
    `JOIN allocations a ON a.refund_id = r.id AND a.cause = 'refund' JOIN payments p ON p.id = r.payment_id
     WHERE a.transaction_id = ? GROUP BY r.id ORDER BY r.id`,
    [transactionId],
  )
}

/** Changes a refund that is still in one of the statuses `from`; returns false otherwise. */
export async function updateRefundIn(
  tx: Tx,
  refundId: number,
  from: readonly RefundStatus[],
  changes: Partial<Omit<Refund, 'id' | 'paymentId' | 'amount'>>,
): Promise<boolean> {
  return (await tx.update(refunds, { id: refundId, status: from }, changes)) === 1
}

/** Pending refunds whose look-up is due, the longest waiting first, after `after`; `dueAt` null lists all pending ones, by id. */
export async function listDueRefunds(
  db: Queries,
  filter: {
    readonly dueAt: RealTime | null
    readonly appId: number | null
    readonly after: Pick<Refund, 'id' | 'nextLookupAt'> | null
    readonly limit: number
  },
): Promise<Refund[]> {
  const { dueAt, appId, after, limit } = filter
  const due = where(
    [`status = 'pending'`],
    appId === null ? null : ['app_id = ?', appId],
    dueAt && ['next_lookup_at <= ?', dueAt],
    dueAt
      ? following(after && { at: after.nextLookupAt ?? dueAt, id: after.id }, ['next_lookup_at', 'id'], 'asc')
      : after && ['id > ?', after.id],
  )
  const order = dueAt ? 'next_lookup_at, id' : 'id'
  return db.all(refunds, `FORCE INDEX (refunds_lookup) ${due.sql} ORDER BY ${order} LIMIT ?`, [...due.params, limit])
}

/** Claims a refund's next look-up; returns false if another worker did. */
export async function claimRefundLookup(tx: Tx, refund: Refund, nextLookupAt: RealTime): Promise<boolean> {
  const { id: refundId, nextLookupAt: dueAt } = refund
  return (await tx.update(refunds, { id: refundId, status: 'pending', nextLookupAt: dueAt }, { nextLookupAt })) === 1
}
