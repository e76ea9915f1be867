import type { EntitySchema, ObjectLiteral } from 'typeorm'
import type { ReadOnly, Tx } from '#db/transaction.ts'
import type { FlagReason } from '#transactions/store.ts'

/** An integer as the driver tells it. */
type Wide = string | number

/** The server as a session sees it, and its clock in UTC. */
export interface ServerFacts {
  readonly version: string
  readonly now: Date
  readonly isReadOnly: boolean
}

export async function readServerFacts(db: ReadOnly): Promise<ServerFacts> {
  const [row] = await db.manager.query<{ version: string; now: Date; readOnly: number | string }[]>(
    'SELECT VERSION() AS version, UTC_TIMESTAMP(3) AS now, @@read_only AS readOnly',
  )
  if (!row) throw new Error('the database does not say what it is')
  return { version: row.version, now: row.now, isReadOnly: Number(row.readOnly) === 1 }
}

/** Columns that hold sealed secrets, and what each is sealed to besides the owner. */
const SECRET_COLUMNS = ['api_secret', 'webhook_secret', 'realtime_service_account'] as const
export type AppSecretColumn = (typeof SECRET_COLUMNS)[number]

/** One sealed secret: where it stands and what it holds. */
export type SealedSecret =
  | {
      readonly table: 'apps'
      readonly id: number
      readonly apiKey: string
      readonly column: AppSecretColumn
      readonly sealed: string
    }
  | {
      readonly table: 'payment_methods'
      readonly id: number
      readonly appId: number
      readonly method: string
      readonly sealed: string
    }

/** The sealed secrets of `limit` apps after `afterId`, and the id to go on from; null where there are no more. */
export async function listAppSecrets(
  db: ReadOnly,
  afterId: number,
  limit: number,
): Promise<{ secrets: SealedSecret[]; nextAfterId: number | null }> {
  const rows = await db.manager.query<
    ({ id: Wide; apiKey: string } & Readonly<Record<AppSecretColumn, string | null>>)[]
  >(`SELECT id, api_key AS apiKey, ${SECRET_COLUMNS.join(', ')} FROM apps WHERE id > ? ORDER BY id LIMIT ?`, [
    afterId,
    limit,
  ])
  const secrets = rows.flatMap((row) =>
    SECRET_COLUMNS.flatMap((column): SealedSecret[] => {
      const sealed = row[column]
      return sealed === null ? [] : [{ table: 'apps', id: Number(row.id), apiKey: row.apiKey, column, sealed }]
    }),
  )
  return { secrets, nextAfterId: nextAfter(rows, limit) }
}

/** As `listAppSecrets`, for the credentials of payment methods. */
export async function listMethodSecrets(
  db: ReadOnly,
  afterId: number,
  limit: number,
): Promise<{ secrets: SealedSecret[]; nextAfterId: number | null }> {
  const rows = await db.manager.query<{ id: Wide; appId: Wide; method: string; credentials: string | null }[]>(
    'SELECT id, app_id AS appId, method, credentials FROM payment_methods WHERE id > ? ORDER BY id LIMIT ?',
    [afterId, limit],
  )
  const secrets = rows.flatMap(({ id, appId, method, credentials }): SealedSecret[] =>
    credentials === null
      ? []
      : [{ table: 'payment_methods', id: Number(id), appId: Number(appId), method, sealed: credentials }],
  )
  return { secrets, nextAfterId: nextAfter(rows, limit) }
}

/** Puts the same secret under another key; false where somebody changed it since it was read. */
export async function replaceSealed(tx: Tx, secret: SealedSecret, sealed: string): Promise<boolean> {
  const column = secret.table === 'apps' ? secret.column : 'credentials'
  const result = await tx.manager.query<{ affectedRows: number }>(
    `UPDATE ${secret.table} SET ${column} = ? WHERE id = ? AND ${column} = ?`,
    [sealed, secret.id, secret.sealed],
  )
  return result.affectedRows === 1
}

function nextAfter(rows: readonly { readonly id: Wide }[], limit: number): number | null {
  const last = rows.at(-1)
  return last && rows.length === limit ? Number(last.id) : null
}

/** How an app's webhooks stand. Counts are of events that are not delivered although an attempt was made. */
export interface WebhookStanding {
  readonly appId: number
  readonly failed: number
  readonly retrying: number
  /** The first attempt that failed after the app last took an event, whichever; null where none did. */
  readonly failingSince: Date | null
  readonly lastError: string | null
}

/** The standing of every app that has events failed, or due again after a failure. */
export async function listWebhookStandings(db: ReadOnly): Promise<WebhookStanding[]> {
  const rows = await db.manager.query<
    { appId: Wide; failed: string; retrying: string; failingSince: Date | null; lastError: string | null }[]
  >(
    `SELECT e.app_id AS appId, SUM(e.delivery_status = 'failed') AS failed,
       SUM(e.delivery_status = 'pending') AS retrying,
       MIN((SELECT MIN(t.started_at) FROM delivery_attempts t FORCE INDEX (delivery_attempts_event)
            WHERE t.event_id = e.id AND t.error IS NOT NULL AND t.started_at > COALESCE(
              (SELECT d.delivered_at FROM events d WHERE d.app_id = e.app_id
               ORDER BY d.delivered_at DESC LIMIT 1), '1000-01-01'))) AS failingSince,
       MAX(CONCAT(LPAD(e.id, 20, '0'), ' ', e.last_error)) AS lastError
     FROM events e
     WHERE e.delivery_status = 'failed' OR (e.delivery_status = 'pending' AND e.last_error IS NOT NULL)
     GROUP BY e.app_id ORDER BY e.app_id`,
  )
  return rows.map((row) => ({
    appId: Number(row.appId),
    failed: Number(row.failed),
    retrying: Number(row.retrying),
    failingSince: row.failingSince,
    // The id in front only orders.
    lastError: row.lastError?.replace(/^\d{20} /, '') ?? null,
  }))
}

/** Events that wait to be sent: how many (counted up to `limit`), and when the one that waits longest was or will be due. */
export async function readOutbox(db: ReadOnly, limit: number): Promise<{ depth: number; oldestDueAt: Date | null }> {
  const [row] = await db.manager.query<{ depth: string | number; oldestDueAt: Date | null }[]>(
    `SELECT (SELECT COUNT(*) FROM (SELECT 1 FROM events WHERE delivery_status = 'pending' LIMIT ?) waiting) AS depth,
       (SELECT MIN(next_attempt_at) FROM events WHERE delivery_status = 'pending') AS oldestDueAt`,
    [limit],
  )
  return { depth: Number(row?.depth ?? 0), oldestDueAt: row?.oldestDueAt ?? null }
}

/** Flagged transactions of live or of sandbox apps. `unapplied`: received and neither applied nor given back. */
export interface FlaggedSum {
  readonly isSandbox: boolean
  readonly reason: FlagReason
  readonly currency: string
  readonly transactions: number
  readonly unapplied: number
}

/** Flagged transactions by reason and currency, of one app or of all. Walks an index of the flagged ones alone. */
export async function sumFlagged(db: ReadOnly, appId: number | null = null): Promise<FlaggedSum[]> {
  const rows = await db.manager.query<
    { isSandbox: Wide; reason: FlagReason; currency: string; transactions: string; unapplied: string }[]
  >(
    `SELECT a.is_sandbox AS isSandbox, t.flag_reason AS reason, t.currency, COUNT(*) AS transactions,
       SUM(CASE WHEN t.flag_reason = 'duplicate_payment' THEN GREATEST(t.amount_received - t.amount, 0)
           ELSE t.amount_received END) AS unapplied
     FROM transactions t JOIN apps a ON a.id = t.app_id
     WHERE t.flag_reason IS NOT NULL${appId === null ? '' : ' AND t.app_id = ?'}
     GROUP BY a.is_sandbox, t.flag_reason, t.currency ORDER BY a.is_sandbox, t.flag_reason, t.currency`,
    appId === null ? [] : [appId],
  )
  return rows.map((row) => ({
    isSandbox: Number(row.isSandbox) === 1,
    reason: row.reason,
    currency: row.currency,
    transactions: Number(row.transactions),
    unapplied: Number(row.unapplied),
  }))
}

/** What providers told since `since` that did not fit what was stored, so that nothing was applied; the newest on top. */
export async function listRefusedEvents(
  db: ReadOnly,
  since: Date,
  limit: number,
): Promise<{ provider: string; eventId: string; transactionId: number | null; note: string | null }[]> {
  return db.manager.query(
    `SELECT provider, event_id AS eventId, transaction_id AS transactionId, note FROM provider_events
     WHERE outcome = 'refused' AND received_at >= ? ORDER BY received_at DESC LIMIT ?`,
    [since, limit],
  )
}

/** Which apps a figure is about. */
export interface AppScope {
  readonly appIds: readonly number[]
}

/** Subscriptions by state, each by its app's own time. */
export interface SubscriptionCounts {
  readonly active: number
  readonly in_trial: number
  readonly lifetime: number
  readonly expiring_in_7_days: number
  readonly expiring_in_30_days: number
  readonly expired: number
  readonly in_grace: number
  readonly lapsed: number
}

/** The app's own time in SQL, from the real one as a parameter. */
const APP_NOW = 'DATE_ADD(CAST(? AS DATETIME(3)), INTERVAL a.clock_offset_ms * 1000 MICROSECOND)'

export async function countSubscriptions(
  db: ReadOnly,
  { appIds }: AppScope,
  now: Date,
  graceDays: number,
): Promise<SubscriptionCounts> {
  const [row] = await db.manager.query<Record<keyof SubscriptionCounts, string | null>[]>(
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
  const count = (name: keyof SubscriptionCounts): number => Number(row?.[name] ?? 0)
  return {
    active: count('active'),
    in_trial: count('in_trial'),
    lifetime: count('lifetime'),
    expiring_in_7_days: count('expiring_in_7_days'),
    expiring_in_30_days: count('expiring_in_30_days'),
    expired: count('expired'),
    in_grace: count('in_grace'),
    lapsed: count('lapsed'),
  }
}

/** Money of one currency and month (`2026-03`, UTC); amounts in the smallest unit. */
export interface CashMonth {
  readonly currency: string
  readonly month: string
  readonly payments: number
  readonly received: number
  readonly refunded: number
}

/** Money received, in the month in which it was paid, and money given back, in the month in which that was. Oldest month first. */
export async function listCashMonths(db: ReadOnly, { appIds }: AppScope): Promise<CashMonth[]> {
  const rows = await db.manager.query<
    { currency: string; month: string; payments: string; received: string; refunded: string }[]
  >(
    `SELECT x.currency, x.month, SUM(x.payments) AS payments, SUM(x.received) AS received, SUM(x.refunded) AS refunded
     FROM (SELECT currency, DATE_FORMAT(paid_at, '%Y-%m') AS month, 1 AS payments, amount AS received, 0 AS refunded
           FROM payments WHERE app_id IN (?)
           UNION ALL
           SELECT currency, DATE_FORMAT(refunded_at, '%Y-%m'), 0, 0, amount
           FROM payments WHERE app_id IN (?) AND refunded_at IS NOT NULL) x
     GROUP BY x.currency, x.month ORDER BY x.currency, x.month`,
    [appIds, appIds],
  )
  return rows.map((row) => ({
    currency: row.currency,
    month: row.month,
    payments: Number(row.payments),
    received: Number(row.received),
    refunded: Number(row.refunded),
  }))
}

/** What a payment bought and is not served to its end: times in the app's own time, which `now` is too. */
export interface PaidPeriod {
  readonly id: number
  readonly currency: string
  readonly amount: number
  readonly start: Date
  readonly end: Date
  readonly now: Date
}

/**
 * Periods that were paid and have not ended, by id. A lifetime purchase serves at once, and what was left of a period when another
 * plan was bought is forfeited: such lines are not here.
 */
export async function listUnservedPeriods(
  db: ReadOnly,
  { appIds }: AppScope,
  now: Date,
  afterId: number,
  limit: number,
): Promise<PaidPeriod[]> {
  const rows = await db.manager.query<(Omit<PaidPeriod, 'id' | 'amount'> & { id: Wide; amount: Wide })[]>(
    `SELECT l.id, t.currency, LEAST(t.amount, t.amount_received) AS amount,
       CASE WHEN l.kind = 'extended' THEN l.end_before ELSE l.period_start END AS start, l.end_after AS end, ${APP_NOW} AS now
     FROM payment_applications l
     JOIN subscriptions s ON s.id = l.subscription_id
     JOIN apps a ON a.id = l.app_id
     JOIN transactions t ON t.id = l.transaction_id
     WHERE l.id > ? AND l.app_id IN (?) AND s.current_period_end IS NOT NULL AND t.status = 'completed'
       AND l.end_after > DATE_ADD(CAST(? AS DATETIME(3)), INTERVAL a.clock_offset_ms * 1000 MICROSECOND)
       AND NOT EXISTS (SELECT 1 FROM payment_applications later WHERE later.subscription_id = l.subscription_id
                       AND later.revision > l.revision AND later.kind <> 'extended')
     ORDER BY l.id LIMIT ?`,
    [now, afterId, appIds, now, limit],
  )
  return rows.map((row) => ({ ...row, id: Number(row.id), amount: Number(row.amount) }))
}

/** Of the periods that ended in the `days` before now: how many a payment followed, and how many none did so far. */
export async function countEndedPeriods(
  db: ReadOnly,
  { appIds }: AppScope,
  now: Date,
  days: number,
): Promise<{ renewed: number; lapsed: number }> {
  const [row] = await db.manager.query<{ renewed: string; lapsed: string }[]>(
    `SELECT
       (SELECT COUNT(DISTINCT l.subscription_id, l.end_before) FROM payment_applications l JOIN apps a ON a.id = l.app_id
        WHERE l.app_id IN (?) AND l.transaction_id IS NOT NULL
          AND l.end_before > DATE_SUB(${APP_NOW}, INTERVAL ? DAY) AND l.end_before <= ${APP_NOW}) AS renewed,
       (SELECT COUNT(*) FROM subscriptions s JOIN apps a ON a.id = s.app_id
        WHERE s.app_id IN (?)
          AND s.current_period_end > DATE_SUB(${APP_NOW}, INTERVAL ? DAY) AND s.current_period_end <= ${APP_NOW}) AS lapsed`,
    [appIds, now, days, now, appIds, now, days, now],
  )
  return { renewed: Number(row?.renewed ?? 0), lapsed: Number(row?.lapsed ?? 0) }
}

export async function countEventsByStatus(
  db: ReadOnly,
  { appIds }: AppScope,
): Promise<{ status: string; events: number }[]> {
  const rows = await db.manager.query<{ status: string; events: string }[]>(
    'SELECT delivery_status AS status, COUNT(*) AS events FROM events WHERE app_id IN (?) GROUP BY delivery_status',
    [appIds],
  )
  return rows.map((row) => ({ status: row.status, events: Number(row.events) }))
}

/** A table whose rows are an app's. */
export type AppTable<T extends AppRow> = EntitySchema<T>

export interface AppRow extends ObjectLiteral {
  readonly id: number
  readonly appId: number
}

/** Rows of an app in any table that has its id, in the order of their ids, for walking through all of them. */
export async function listRowsAfter<T extends AppRow>(
  db: ReadOnly,
  schema: AppTable<T>,
  appId: number,
  afterId: number,
  limit: number,
): Promise<T[]> {
  const query = db.manager
    .createQueryBuilder(schema, 'r')
    .where('r.appId = :appId AND r.id > :afterId', { appId, afterId })
  return query.orderBy('r.id', 'ASC').limit(limit).getMany()
}
