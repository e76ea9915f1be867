import { bigint, exact, flag, sum, text } from '#db/columns.ts'
import { following, where, type PageRequest } from '#db/conditions.ts'
import type { Queries } from '#db/queries.ts'
import { shape, type Row } from '#db/table.ts'
import { payments, type Payment } from '#payments/store.ts'

/**
 * A payment as operators list it. `waiting` is the amount that waits for a decision; null if the amount is not known. It is the part that
 * is not allocated, and the part that a flagged transaction does not use, counted from the newest payment.
 */
export type ListedPayment = Payment & {
  readonly waiting: number | null
  readonly flagReason: string | null
  readonly transactionId: number | null
  readonly externalRef: string | null
}

/** The payments of flagged transactions, with what the transaction has left of each. */
const FLAGGED = `
  SELECT k.payment_id, k.transaction_id, k.flag_reason,
    LEAST(k.kept, GREATEST(k.amount_left - (k.up_to - k.kept), 0)) AS waiting
  FROM (SELECT a.payment_id, a.transaction_id, t.flag_reason, t.amount_left, SUM(a.amount) AS kept,
          SUM(SUM(a.amount)) OVER (PARTITION BY a.transaction_id ORDER BY a.payment_id DESC) AS up_to
        FROM transactions t JOIN allocations a ON a.transaction_id = t.id
        WHERE t.flag_reason IS NOT NULL GROUP BY a.payment_id, a.transaction_id, t.flag_reason, t.amount_left) k`

const UNALLOCATED = `
  SELECT id AS payment_id, NULL AS transaction_id, NULL AS flag_reason, amount_left AS waiting FROM payments
  WHERE closed_at IS NULL AND (amount_left > 0 OR amount_left IS NULL)`

export interface PaymentFilter extends PageRequest {
  /** Null: of all apps. */
  readonly appId: number | null
  /** Only those with money that waits for a decision. */
  readonly waiting: boolean
  /** Received from then on. */
  readonly since?: Date | null
  /** Received before then. */
  readonly until?: Date | null
  readonly provider?: string | null
}

/** The newest payments first. */
export async function listPaymentRows(db: Queries, filter: PaymentFilter): Promise<ListedPayment[]> {
  const { appId, waiting, limit, since, until, provider } = filter
  const listed = where(
    appId === null ? null : ['p.app_id = ?', appId],
    waiting ? ['w.payment_id IS NOT NULL'] : null,
    since ? ['p.received_at >= ?', since] : null,
    until ? ['p.received_at < ?', until] : null,
    provider ? ['p.provider = ?', provider] : null,
    following(filter.after, ['p.received_at', 'p.id'], 'desc'),
  )
  const waits = `SELECT payment_id, MIN(transaction_id) AS transaction_id, MIN(flag_reason) AS flag_reason,
      CASE WHEN COUNT(waiting) < COUNT(*) THEN NULL ELSE SUM(waiting) END AS waiting
    FROM (${FLAGGED} UNION ALL ${UNALLOCATED}) q WHERE waiting IS NULL OR waiting > 0 GROUP BY payment_id`
  // Without this hint, MySQL reads and sorts all payments for each page.
  const inOrder = waiting ? '' : 'FORCE INDEX (payments_received) '
  return db.all(
    payments.joined('p', {
      waiting: bigint(`CASE WHEN w.payment_id IS NULL THEN 0 ELSE w.waiting END`).nullable(),
      flagReason: exact('w.flag_reason', 32).nullable(),
      transactionId: bigint(
        `COALESCE(w.transaction_id, (SELECT MAX(a.transaction_id) FROM allocations a WHERE a.payment_id = p.id))`,
      ).nullable(),
      externalRef: exact('(SELECT e.external_ref FROM end_users e WHERE e.id = p.end_user_id)', 191).nullable(),
    }),
    `${inOrder}LEFT JOIN (${waits}) w ON w.payment_id = p.id ${listed.sql} ORDER BY p.received_at DESC, p.id DESC LIMIT ?`,
    [...listed.params, limit],
  )
}

const UNALLOCATED_SUM = shape({
  /** False if the app is not known. */
  isSandbox: flag(),
  currency: text(),
  payments: bigint(),
  unknown: bigint(),
  amount: sum(),
})
/** Money that no transaction has: payments with something left, and payments of unknown amount. */
export type UnallocatedSum = Row<typeof UNALLOCATED_SUM>

export async function sumUnallocated(db: Queries, appId: number | null): Promise<UnallocatedSum[]> {
  return db.all(
    UNALLOCATED_SUM,
    `SELECT COALESCE(a.is_sandbox, 0) AS isSandbox, p.currency, COUNT(*) AS payments,
       SUM(p.amount_left IS NULL) AS \`unknown\`, COALESCE(SUM(p.amount_left), 0) AS amount
     FROM payments p LEFT JOIN apps a ON a.id = p.app_id
     WHERE p.closed_at IS NULL AND (p.amount_left > 0 OR p.amount_left IS NULL)${appId === null ? '' : ' AND p.app_id = ?'}
     GROUP BY COALESCE(a.is_sandbox, 0), p.currency ORDER BY COALESCE(a.is_sandbox, 0), p.currency`,
    appId === null ? [] : [appId],
  )
}
