import { appTime, bigint, id, realTime, sum, text } from '#db/columns.ts'
import { shape, type Row } from '#db/table.ts'
import type { Param, Queries } from '#db/queries.ts'
import type { MonthRange } from '#reports/month.ts'
import type { AppMode, MoneyScope } from '#reports/store.ts'

const SOLD_OF_MONTH = shape({
  month: text(),
  currency: text(),
  /** Empty for money of no transaction. */
  planRef: text(),
  provider: text(),
  received: sum(),
  discounts: sum(),
  refunds: sum(),
})
/** Sales of a month by plan and provider; amounts in the smallest unit of `currency`. */
export type SoldOfMonth = Row<typeof SOLD_OF_MONTH>

/**
 * The transaction that most of the payment `p` was booked for, the newest of several (R420), of the app that it was booked for last.
 * Refunds do not change it.
 */
const MAIN_TRANSACTION = `(SELECT a.transaction_id FROM allocations a WHERE a.payment_id = p.id AND a.app_id = p.app_id
  GROUP BY a.transaction_id
  ORDER BY SUM(CASE WHEN a.cause IN ('booked', 'matched', 'moved') THEN a.amount ELSE 0 END) DESC, a.transaction_id DESC
  LIMIT 1)`

/** The transaction that lost most to the refund `r` of the payment `p`; the payment's own if none lost money. */
const REFUNDED_TRANSACTION = `COALESCE((SELECT a.transaction_id FROM allocations a
  WHERE a.refund_id = r.id AND a.cause = 'refund' AND a.app_id = p.app_id ORDER BY a.amount, a.id DESC LIMIT 1), ${MAIN_TRANSACTION})`

/**
 * A real time of the payment `p` by the clock of its app, which had the offset then that its next move found: a payment or a refund is
 * dated once, and the clock that moves on leaves it in its month.
 */
const byAppClock = (time: string): string =>
  `DATE_ADD(${time}, INTERVAL COALESCE(
     (SELECT CAST(JSON_EXTRACT(move.before_state, '$.clock_offset_ms') AS SIGNED) FROM audit_log move
      WHERE move.subject = CONCAT('app ', p.app_id) AND move.action = 'app.clock' AND move.at > ${time} ORDER BY move.id LIMIT 1),
     (SELECT owner.clock_offset_ms FROM apps owner WHERE owner.id = p.app_id)) * 1000 MICROSECOND)`

/**
 * The completed transactions `d` with a discount that the payment `p` completed, so that a sum over payments has each once. Payments are
 * booked in the order of the ids of their allocations; an older payment may be moved to a purchase and complete it.
 */
const DISCOUNTED = `FROM transactions d
  WHERE d.id IN (SELECT a.transaction_id FROM allocations a WHERE a.payment_id = p.id AND a.amount > 0)
    AND d.amount > 0 AND d.discount_amount > 0 AND d.completed_at IS NOT NULL AND d.amount_received > 0
    AND p.id = (SELECT completing.payment_id FROM allocations completing WHERE completing.id =
      (SELECT COALESCE(MAX(CASE WHEN ${byAppClock('a.at')} <= d.completed_at THEN a.id END), MIN(a.id))
       FROM allocations a WHERE a.transaction_id = d.id AND a.amount > 0))`
/** What promotions took off what the payment `p` completed. */
const DISCOUNTS = `(SELECT COALESCE(SUM(d.discount_amount), 0) ${DISCOUNTED})`
/** Their codes; null if nothing was taken off. */
const PROMOTION_CODES = `(SELECT GROUP_CONCAT(DISTINCT d.promotion_code ORDER BY d.promotion_code SEPARATOR ' ') ${DISCOUNTED})`

/** A purchase that a promotion paid in full; money that comes for it afterwards changes nothing. */
const FREE_PURCHASE = 't.amount = 0 AND t.discount_amount > 0 AND t.completed_at IS NOT NULL'

/** When the payment `p` was made: real, and of a sandbox app by its own clock (R420). */
const PAID_AT = { live: 'p.paid_at', test: byAppClock('p.received_at') } as const

/** When the refund `r` of the payment `p` was made, in the same way. */
const REFUNDED_AT = { live: 'r.ended_at', test: byAppClock('r.ended_at') } as const

const CASH_MONTH = shape({ currency: text(), month: text(), payments: bigint(), received: sum(), refunded: sum() })
/** Money of one currency and month (`2026-03`, UTC); amounts in the smallest unit. */
export type CashMonth = Row<typeof CASH_MONTH>

/**
 * Money received, by the month in which it was paid, once its payer is known; and money refunded, by the month of the refund. Months of a
 * sandbox app follow its test clock (R420). Oldest month first.
 */
export async function listCashMonths(db: Queries, { appIds, mode }: MoneyScope): Promise<CashMonth[]> {
  return db.all(
    CASH_MONTH,
    `SELECT x.currency, x.month, SUM(x.payments) AS payments, SUM(x.received) AS received, SUM(x.refunded) AS refunded
     FROM (SELECT p.currency, DATE_FORMAT(${PAID_AT[mode]}, '%Y-%m') AS month, 1 AS payments, p.amount AS received, 0 AS refunded
           FROM payments p
           WHERE p.app_id IN (?) AND p.end_user_id IS NOT NULL
           UNION ALL
           SELECT p.currency, DATE_FORMAT(${REFUNDED_AT[mode]}, '%Y-%m'), 0, 0, r.amount
           FROM refunds r JOIN payments p ON p.id = r.payment_id
           WHERE p.app_id IN (?) AND p.end_user_id IS NOT NULL AND r.status = 'succeeded') x
     GROUP BY x.currency, x.month ORDER BY x.currency, x.month`,
    [appIds, appIds],
  )
}

/** A table of months in SQL, named `m`, with its parameters. */
export function monthTable(months: readonly MonthRange[]): { sql: string; params: Param[] } {
  const row = 'SELECT ? AS month, CAST(? AS DATETIME(3)) AS since, CAST(? AS DATETIME(3)) AS until'
  return {
    sql: `(${months.map(() => row).join(' UNION ALL ')}) m`,
    params: months.flatMap(({ month, from, until }) => [month, from, until]),
  }
}

/** What was sold in each of the months: payments whose payer is known, refunds that succeeded, and what promotions took off. */
export async function listSoldByMonth(
  db: Queries,
  { appIds, mode }: MoneyScope,
  months: readonly MonthRange[],
): Promise<SoldOfMonth[]> {
  const { sql, params } = monthTable(months)
  const within = (time: string): string => `${time} >= m.since AND ${time} < m.until`
  return db.all(
    SOLD_OF_MONTH,
    `SELECT x.month, x.currency, COALESCE(x.plan_ref, '') AS planRef, x.provider,
       SUM(x.received) AS received, SUM(x.discounts) AS discounts, SUM(x.refunds) AS refunds
     FROM (SELECT m.month, p.currency, t.plan_ref, p.provider, p.amount AS received, ${DISCOUNTS} AS discounts, 0 AS refunds
           FROM payments p CROSS JOIN ${sql} LEFT JOIN transactions t ON t.id = ${MAIN_TRANSACTION}
           WHERE ${within(PAID_AT[mode])} AND p.app_id IN (?) AND p.end_user_id IS NOT NULL AND p.amount IS NOT NULL
           UNION ALL
           SELECT m.month, p.currency, t.plan_ref, p.provider, 0, 0, r.amount
           FROM refunds r JOIN payments p ON p.id = r.payment_id CROSS JOIN ${sql}
           LEFT JOIN transactions t ON t.id = ${REFUNDED_TRANSACTION}
           WHERE ${within(REFUNDED_AT[mode])} AND p.app_id IN (?) AND p.end_user_id IS NOT NULL AND r.status = 'succeeded'
           UNION ALL
           SELECT m.month, t.currency, t.plan_ref, COALESCE(t.provider_code, 'promotion'), 0, t.discount_amount, 0
           FROM transactions t JOIN ${sql} ON ${within('t.completed_at')}
           WHERE t.app_id IN (?) AND ${FREE_PURCHASE}) x
     GROUP BY x.month, x.currency, x.plan_ref, x.provider`,
    [...params, appIds, ...params, appIds, ...params, appIds],
  )
}

const RENEWAL_PRICE = shape({
  appId: bigint(),
  amount: bigint(),
  currency: text(),
  promotionCode: text().nullable(),
})

/** The present prices of subscriptions, in the smallest unit, each with the code of its discount on every period. */
export async function listRenewalPrices(
  db: Queries,
  appId: number,
  externalRefs: readonly string[],
): Promise<Row<typeof RENEWAL_PRICE>[]> {
  if (externalRefs.length === 0) return []
  return db.all(
    RENEWAL_PRICE,
    `SELECT s.app_id AS appId, p.amount, p.currency, s.promotion_code AS promotionCode
     FROM subscriptions s JOIN prices p ON p.id = s.price_id WHERE s.app_id = ? AND s.external_ref IN (?)`,
    [appId, externalRefs],
  )
}

const SALE = shape({
  id: id(),
  at: realTime(),
  transactionId: bigint().nullable(),
  externalRef: text().nullable(),
  customer: text().nullable(),
  planRef: text().nullable(),
  provider: text(),
  reference: text().nullable(),
  received: bigint(),
  discount: bigint(),
  promotionCode: text().nullable(),
  refunded: bigint(),
  currency: text(),
  /** Of the period that the transaction gave; null if it gave none, and at the end of lifetime. */
  periodFrom: appTime().nullable(),
  periodTo: appTime().nullable(),
})
/** A payment or a refund, or a purchase that a promotion paid in full, with what it was for. Amounts in the smallest unit. */
export type SaleRow = Row<typeof SALE>

/** The part of a row that comes from its transaction `t`, which may be missing. */
const SOLD = `t.id AS transactionId, t.external_ref AS externalRef, c.name AS customer, t.plan_ref AS planRef,
  CASE WHEN l.kind = 'extended' THEN l.end_before ELSE l.period_start END AS periodFrom, l.end_after AS periodTo`
const SOLD_TABLES = `LEFT JOIN payment_applications l ON l.transaction_id = t.id
  LEFT JOIN subscriptions s ON s.end_user_id = t.end_user_id
  LEFT JOIN customers c ON c.id = COALESCE(t.customer_id, s.customer_id)`

export interface SalesPage {
  readonly appId: number
  readonly mode: AppMode
  readonly afterId: number
  readonly limit: number
}

/** A page of an app's payments whose payer is known, by id. */
export async function listSoldPayments(db: Queries, { appId, mode, afterId, limit }: SalesPage): Promise<SaleRow[]> {
  return db.all(
    SALE,
    `SELECT p.id, ${PAID_AT[mode]} AS at, ${SOLD}, p.provider, p.reference, p.amount AS received, ${DISCOUNTS} AS discount,
       ${PROMOTION_CODES} AS promotionCode, 0 AS refunded, p.currency
     FROM payments p LEFT JOIN transactions t ON t.id = ${MAIN_TRANSACTION} ${SOLD_TABLES}
     WHERE p.app_id = ? AND p.id > ? AND p.end_user_id IS NOT NULL AND p.amount IS NOT NULL ORDER BY p.id LIMIT ?`,
    [appId, afterId, limit],
  )
}

/** A page of an app's refunds that succeeded, by id. */
export async function listSoldRefunds(db: Queries, { appId, mode, afterId, limit }: SalesPage): Promise<SaleRow[]> {
  return db.all(
    SALE,
    `SELECT r.id, ${REFUNDED_AT[mode]} AS at, ${SOLD}, p.provider, r.reference, 0 AS received, 0 AS discount,
       NULL AS promotionCode, r.amount AS refunded, p.currency
     FROM refunds r JOIN payments p ON p.id = r.payment_id LEFT JOIN transactions t ON t.id = ${REFUNDED_TRANSACTION} ${SOLD_TABLES}
     WHERE p.app_id = ? AND r.id > ? AND p.end_user_id IS NOT NULL AND r.status = 'succeeded'
     ORDER BY r.id LIMIT ?`,
    [appId, afterId, limit],
  )
}

/** A page of an app's purchases that a promotion paid in full, by id. */
export async function listFreePurchases(db: Queries, { appId, afterId, limit }: SalesPage): Promise<SaleRow[]> {
  return db.all(
    SALE,
    `SELECT t.id, t.completed_at AS at, ${SOLD}, COALESCE(t.provider_code, 'promotion') AS provider, NULL AS reference, 0 AS received,
       t.discount_amount AS discount, t.promotion_code AS promotionCode, 0 AS refunded, t.currency
     FROM transactions t ${SOLD_TABLES}
     WHERE t.app_id = ? AND t.id > ? AND ${FREE_PURCHASE} ORDER BY t.id LIMIT ?`,
    [appId, afterId, limit],
  )
}
