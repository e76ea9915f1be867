import { appTime, bigint, flag, id, sum, text } from '#db/columns.ts'
import { shape, type Row, type Source } from '#db/table.ts'
import type { Queries } from '#db/queries.ts'
import type { FlagReason } from '#transactions/store.ts'
import type { RealTime } from '#shared/time.ts'

const FLAGGED_SUM = shape({
  isSandbox: flag(),
  reason: text().as<FlagReason>(),
  currency: text(),
  transactions: bigint(),
  /** Received and neither applied nor refunded. */
  unapplied: sum(),
})
/** Flagged transactions of live or of sandbox apps. */
export type FlaggedSum = Row<typeof FLAGGED_SUM>

/** Flagged transactions by reason and currency, of one app or of all. Reads only the flagged part of an index. */
export async function sumFlagged(db: Queries, appId: number | null = null): Promise<FlaggedSum[]> {
  return db.all(
    FLAGGED_SUM,
    `SELECT a.is_sandbox AS isSandbox, t.flag_reason AS reason, t.currency, COUNT(*) AS transactions,
       SUM(t.amount_left) AS unapplied
     FROM transactions t JOIN apps a ON a.id = t.app_id
     WHERE t.flag_reason IS NOT NULL${appId === null ? '' : ' AND t.app_id = ?'}
     GROUP BY a.is_sandbox, t.flag_reason, t.currency ORDER BY a.is_sandbox, t.flag_reason, t.currency`,
    appId === null ? [] : [appId],
  )
}

/** Money beyond the amount of completed transactions that is neither flagged nor decided about. */
export async function sumSurplus(
  db: Queries,
  appId: number | null = null,
): Promise<
  { readonly isSandbox: boolean; readonly currency: string; readonly transactions: number; readonly surplus: bigint }[]
> {
  return db.all(
    shape({ isSandbox: flag(), currency: text(), transactions: bigint(), surplus: sum() }),
    `SELECT a.is_sandbox AS isSandbox, t.currency, COUNT(*) AS transactions, SUM(t.amount_left) AS surplus
     FROM transactions t JOIN apps a ON a.id = t.app_id
     WHERE t.amount_left > 0 AND t.flag_reason IS NULL${appId === null ? '' : ' AND t.app_id = ?'}
     GROUP BY a.is_sandbox, t.currency ORDER BY a.is_sandbox, t.currency`,
    appId === null ? [] : [appId],
  )
}

/** The apps that a statistic covers. */
export interface AppScope {
  readonly appIds: readonly number[]
}

/** `test`: sandbox apps, in which no real money moves. */
export type AppMode = 'live' | 'test'

/** The apps that a statistic of money covers, all of one mode. */
export interface MoneyScope extends AppScope {
  readonly mode: AppMode
}

// A sum over no rows is null.
const count = bigint().nullable()
const SUBSCRIPTION_COUNTS = shape({
  active: count,
  in_trial: count,
  lifetime: count,
  expiring_in_7_days: count,
  expiring_in_30_days: count,
  expired: count,
  in_grace: count,
  lapsed: count,
})
/** Subscriptions by state, each by its app's own time. */
export type SubscriptionCounts = Readonly<Record<keyof Row<typeof SUBSCRIPTION_COUNTS>, number>>

/** The app's own time in SQL, from the real one as a parameter. */
export const APP_NOW = 'DATE_ADD(CAST(? AS DATETIME(3)), INTERVAL a.clock_offset_ms * 1000 MICROSECOND)'

export async function countSubscriptions(
  db: Queries,
  { appIds }: AppScope,
  now: RealTime,
  graceDays: number,
): Promise<SubscriptionCounts> {
  const counts = await db.single(
    SUBSCRIPTION_COUNTS,
    `SELECT SUM(x.ends IS NULL OR x.ends > x.now) AS active,
       SUM((x.ends IS NULL OR x.ends > x.now) AND x.in_trial = 1) AS in_trial,
       SUM(x.ends IS NULL) AS lifetime,
       SUM(x.ends > x.now AND x.ends <= DATE_ADD(x.now, INTERVAL 7 DAY)) AS expiring_in_7_days,
       SUM(x.ends > x.now AND x.ends <= DATE_ADD(x.now, INTERVAL 30 DAY)) AS expiring_in_30_days,
       SUM(x.ends <= x.now) AS expired,
       SUM(x.ends <= x.now AND DATE_ADD(x.ends, INTERVAL ? DAY) > x.now) AS in_grace,
       SUM(DATE_ADD(x.ends, INTERVAL ? DAY) <= x.now) AS lapsed
     FROM (SELECT s.current_period_end AS ends, s.in_trial, ${APP_NOW} AS now
           FROM subscriptions s JOIN apps a ON a.id = s.app_id WHERE s.app_id IN (?)) x`,
    [graceDays, graceDays, now, appIds],
  )
  return Object.fromEntries(Object.entries(counts).map(([name, sum]) => [name, sum ?? 0])) as SubscriptionCounts
}

const ACTIVE_OF_PLAN = shape({ appId: bigint(), isSandbox: flag(), plan: text(), subscriptions: bigint() })
/** Active subscriptions of a plan. */
export type ActiveOfPlan = Row<typeof ACTIVE_OF_PLAN>

/** Active subscriptions of every app, each by its own time, without plans that have none. */
export async function countActiveByPlan(db: Queries, now: RealTime): Promise<ActiveOfPlan[]> {
  return db.all(
    ACTIVE_OF_PLAN,
    `SELECT x.app_id AS appId, x.is_sandbox AS isSandbox, p.code AS plan, x.subscriptions
     FROM (SELECT s.app_id, a.is_sandbox, s.plan_id, COUNT(*) AS subscriptions FROM subscriptions s JOIN apps a ON a.id = s.app_id
           WHERE s.current_period_end IS NULL OR s.current_period_end > ${APP_NOW}
           GROUP BY s.app_id, a.is_sandbox, s.plan_id) x
     JOIN plans p ON p.id = x.plan_id ORDER BY x.app_id, p.code`,
    [now],
  )
}

const RECEIVED_SUM = shape({ provider: text(), currency: text(), isSandbox: flag(), amount: sum() })
/** All money that came by one provider, refunded or not. */
export type ReceivedSum = Row<typeof RECEIVED_SUM>

/** Money received whose payer is known, of all apps. */
export async function sumReceived(db: Queries): Promise<ReceivedSum[]> {
  return db.all(
    RECEIVED_SUM,
    `SELECT p.provider, p.currency, a.is_sandbox AS isSandbox, SUM(p.amount) AS amount
     FROM payments p JOIN apps a ON a.id = p.app_id WHERE p.end_user_id IS NOT NULL AND p.amount IS NOT NULL
     GROUP BY p.provider, p.currency, a.is_sandbox ORDER BY p.provider, p.currency, a.is_sandbox`,
    [],
  )
}

const PAID_PERIOD = shape({
  id: id(),
  currency: text(),
  amount: bigint(),
  start: appTime(),
  end: appTime(),
  now: appTime(),
})
/** A paid period that has not ended. All times are in the app's own time. */
export type PaidPeriod = Row<typeof PAID_PERIOD>

/**
 * Paid periods that have not ended, by id. Lifetime purchases count as served at once, and what was left of a period when another plan was
 * bought is forfeited: both are left out.
 */
export async function listUnservedPeriods(
  db: Queries,
  { appIds }: AppScope,
  now: RealTime,
  afterId: number,
  limit: number,
): Promise<PaidPeriod[]> {
  return db.all(
    PAID_PERIOD,
    `SELECT l.id, t.currency, t.amount_used AS amount,
       CASE WHEN l.kind = 'extended' THEN l.end_before ELSE l.period_start END AS start, l.end_after AS end, ${APP_NOW} AS now
     FROM payment_applications l
     JOIN subscriptions s ON s.id = l.subscription_id
     JOIN apps a ON a.id = l.app_id
     JOIN transactions t ON t.id = l.transaction_id
     WHERE l.id > ? AND l.app_id IN (?) AND s.current_period_end IS NOT NULL AND t.status = 'completed'
       AND l.end_after > ${APP_NOW}
       AND NOT EXISTS (SELECT 1 FROM payment_applications later WHERE later.subscription_id = l.subscription_id
                       AND later.revision > l.revision AND later.kind NOT IN ('extended', 'switched'))
     ORDER BY l.id LIMIT ?`,
    [now, afterId, appIds, now, limit],
  )
}

/** Of the periods that ended in the last `days`: how many were renewed by a payment, and how many were not so far. */
export async function countEndedPeriods(
  db: Queries,
  { appIds }: AppScope,
  now: RealTime,
  days: number,
): Promise<{ renewed: number; lapsed: number }> {
  return db.single(
    shape({ renewed: bigint(), lapsed: bigint() }),
    `SELECT
       (SELECT COUNT(DISTINCT l.subscription_id, l.end_before) FROM payment_applications l JOIN apps a ON a.id = l.app_id
        WHERE l.app_id IN (?) AND l.transaction_id IS NOT NULL
          AND l.end_before > DATE_SUB(${APP_NOW}, INTERVAL ? DAY) AND l.end_before <= ${APP_NOW}) AS renewed,
       (SELECT COUNT(*) FROM subscriptions s JOIN apps a ON a.id = s.app_id
        WHERE s.app_id IN (?)
          AND s.current_period_end > DATE_SUB(${APP_NOW}, INTERVAL ? DAY) AND s.current_period_end <= ${APP_NOW}) AS lapsed`,
    [appIds, now, days, now, appIds, now, days, now],
  )
}

export async function countEventsByStatus(
  db: Queries,
  { appIds }: AppScope,
): Promise<{ status: string; events: number }[]> {
  return db.all(
    shape({ status: text(), events: bigint() }),
    'SELECT delivery_status AS status, COUNT(*) AS events FROM events WHERE app_id IN (?) GROUP BY delivery_status',
    [appIds],
  )
}

export interface AppRow {
  readonly id: number
  readonly appId: number | null
}

/** A page of an app's rows of any table that has an app id, ordered by their own ids. */
export async function listRowsAfter<R extends AppRow>(
  db: Queries,
  source: Source<R>,
  appId: number,
  afterId: number,
  limit: number,
): Promise<R[]> {
  return db.all(source, 'WHERE app_id = ? AND id > ? ORDER BY id LIMIT ?', [appId, afterId, limit])
}
