import { appTime, bigint, flag, id, int, realTime, sum, text } from '#db/columns.ts'
import { IS_READ_ONLY } from '#db/session.ts'
import { shape, type Table } from '#db/table.ts'
import type { Queries } from '#db/queries.ts'
import type { Tx } from '#commands/transaction.ts'
import type { FlagReason } from '#transactions/store.ts'
import { FIRST_DUE, type DeliveryStatus } from '#webhooks/store.ts'
import type { AppTime, RealTime } from '#shared/time.ts'

/** The server as a session sees it, and its clock in UTC. */
export interface ServerFacts {
  readonly version: string
  readonly now: RealTime
  readonly isReadOnly: boolean
}

export async function readServerFacts(db: Queries): Promise<ServerFacts> {
  const facts = await db.one(
    shape({ version: text(), now: realTime(), isReadOnly: flag() }),
    `SELECT VERSION() AS version, UTC_TIMESTAMP(3) AS now, ${IS_READ_ONLY} AS isReadOnly`,
  )
  if (!facts) throw new Error('the database did not report its version')
  return facts
}

/** What the server does so that a committed payment survives a loss of power. */
export interface Durability {
  readonly flushesLog: number
  readonly hasBinaryLog: boolean
  readonly syncsBinaryLog: number
}

export async function readDurability(db: Queries): Promise<Durability> {
  const found = await db.one(
    shape({ flushesLog: bigint(), hasBinaryLog: flag(), syncsBinaryLog: bigint() }),
    `SELECT @@GLOBAL.innodb_flush_log_at_trx_commit AS flushesLog, @@GLOBAL.log_bin AS hasBinaryLog, @@GLOBAL.sync_binlog AS syncsBinaryLog`,
  )
  if (!found) throw new Error('the database did not report its settings')
  return found
}

/** The folders of the server's data and logs, as the server names them. */
export async function readDataFolders(db: Queries): Promise<string[]> {
  const found = await db.one(
    shape({ data: text(), redo: text().nullable(), binaryLog: text().nullable() }),
    `SELECT @@datadir AS data, NULLIF(@@innodb_log_group_home_dir, './') AS redo, @@log_bin_basename AS binaryLog`,
  )
  const folders = found ? [found.data, found.redo, found.binaryLog] : []
  return folders.filter((folder) => folder !== null).filter((folder) => folder.startsWith('/'))
}

/** Columns of sealed secrets. The name is part of what a secret is sealed to. */
const SECRET_COLUMNS = ['api_secret', 'webhook_secret', 'realtime_service_account'] as const
export type AppSecretColumn = (typeof SECRET_COLUMNS)[number]

/** One sealed secret, and where it is stored. */
export type SealedSecret =
  | {
      readonly table: 'apps'
      readonly id: number
      readonly apiKey: string
      readonly column: AppSecretColumn
      readonly sealed: string
    }
  | {
      readonly table: 'provider_accounts'
      readonly id: number
      readonly appId: number
      readonly method: string
      readonly version: number
      readonly sealed: string
    }

/** The sealed secrets of `limit` apps after `afterId`, and the id to continue from; null if there are no more. */
export async function listAppSecrets(
  db: Queries,
  afterId: number,
  limit: number,
): Promise<{ secrets: SealedSecret[]; nextAfterId: number | null }> {
  const sealed = text().nullable()
  const rows = await db.all(
    shape({ id: id(), apiKey: text(), api_secret: sealed, webhook_secret: sealed, realtime_service_account: sealed }),
    `SELECT id, api_key AS apiKey, ${SECRET_COLUMNS.join(', ')} FROM apps WHERE id > ? ORDER BY id LIMIT ?`,
    [afterId, limit],
  )
  const secrets = rows.flatMap((row) =>
    SECRET_COLUMNS.flatMap((column): SealedSecret[] => {
      const secret = row[column]
      return secret === null ? [] : [{ table: 'apps', id: row.id, apiKey: row.apiKey, column, sealed: secret }]
    }),
  )
  return { secrets, nextAfterId: nextAfter(rows, limit) }
}

/** As `listAppSecrets`, for the credentials at providers, in every version. */
export async function listMethodSecrets(
  db: Queries,
  afterId: number,
  limit: number,
): Promise<{ secrets: SealedSecret[]; nextAfterId: number | null }> {
  const rows = await db.all(
    shape({ id: id(), appId: bigint(), method: text(), version: int(), credentials: text().nullable() }),
    'SELECT id, app_id AS appId, method, version, credentials FROM provider_accounts WHERE id > ? ORDER BY id LIMIT ?',
    [afterId, limit],
  )
  const secrets = rows.flatMap(({ credentials, ...row }): SealedSecret[] =>
    credentials === null ? [] : [{ table: 'provider_accounts', ...row, sealed: credentials }],
  )
  return { secrets, nextAfterId: nextAfter(rows, limit) }
}

/** Stores the same secret under another key; false if it was changed since it was read. */
export async function replaceSealed(tx: Tx, secret: SealedSecret, sealed: string): Promise<boolean> {
  const column = secret.table === 'apps' ? secret.column : 'credentials'
  return (
    (await tx.run(`UPDATE ${secret.table} SET ${column} = ? WHERE id = ? AND ${column} = ?`, [
      sealed,
      secret.id,
      secret.sealed,
    ])) === 1
  )
}

function nextAfter(rows: readonly { readonly id: number }[], limit: number): number | null {
  const last = rows.at(-1)
  return last && rows.length === limit ? last.id : null
}

/** The state of an app's webhooks. Counts are of undelivered events that were attempted. */
export interface WebhookStanding {
  readonly appId: number
  readonly failed: number
  readonly retrying: number
  /** The first failed attempt since the newest event that the app acknowledged was delivered; null if none failed. */
  readonly failingSince: RealTime | null
  readonly lastError: string | null
}

/** Events of all apps, by an index that begins with the app: there is none over all apps. */
function eventsIn(status: DeliveryStatus, columns: string): string {
  return `SELECT ${columns} FROM apps a STRAIGHT_JOIN events e FORCE INDEX (events_app_due)
          ON e.app_id = a.id AND e.delivery_status = '${status}'`
}

/** The standing of every app that has events failed, or due again after a failure. */
export async function listWebhookStandings(db: Queries): Promise<WebhookStanding[]> {
  const columns = 'e.id, e.app_id, e.delivery_status, e.last_error'
  const rows = await db.all(
    shape({
      appId: bigint(),
      failed: bigint(),
      retrying: bigint(),
      failingSince: realTime().nullable(),
      lastError: text().nullable(),
    }),
    `SELECT e.app_id AS appId, SUM(e.delivery_status = 'failed') AS failed,
       SUM(e.delivery_status = 'pending') AS retrying,
       MIN((SELECT MIN(t.started_at) FROM delivery_attempts t FORCE INDEX (delivery_attempts_event)
            WHERE t.event_id = e.id AND t.error IS NOT NULL AND t.started_at > COALESCE(
              (SELECT d.delivered_at FROM events d FORCE INDEX (events_app_due)
               WHERE d.app_id = e.app_id AND d.delivery_status = 'delivered' AND d.next_attempt_at IS NULL
               ORDER BY d.id DESC LIMIT 1), '1000-01-01'))) AS failingSince,
       MAX(CONCAT(LPAD(e.id, 20, '0'), ' ', e.last_error)) AS lastError
     FROM (${eventsIn('failed', columns)} UNION ALL ${eventsIn('pending', columns)} WHERE e.last_error IS NOT NULL) e
     GROUP BY e.app_id ORDER BY e.app_id`,
  )
  return rows.map((row) => ({
    ...row,
    // The id in front only sorts.
    lastError: row.lastError?.replace(/^\d{20} /, '') ?? null,
  }))
}

/** Events waiting to be sent: how many (counted up to `limit`), and when the oldest was or will be due. */
export async function readOutbox(db: Queries, limit: number): Promise<{ depth: number; oldestDueAt: RealTime | null }> {
  const outbox = await db.one(
    shape({ depth: bigint(), oldestDueAt: realTime().nullable() }),
    `SELECT (SELECT COUNT(*) FROM (${eventsIn('pending', 'e.id')} LIMIT ?) waiting) AS depth,
       (SELECT MIN(dueAt) FROM (${FIRST_DUE}) waiting) AS oldestDueAt`,
    [limit],
  )
  return outbox ?? { depth: 0, oldestDueAt: null }
}

/** Flagged transactions of live or of sandbox apps. `unapplied`: received and neither applied nor refunded. */
export interface FlaggedSum {
  readonly isSandbox: boolean
  readonly reason: FlagReason
  readonly currency: string
  readonly transactions: number
  readonly unapplied: bigint
}

/** Flagged transactions by reason and currency, of one app or of all. Reads only the flagged part of an index. */
export async function sumFlagged(db: Queries, appId: number | null = null): Promise<FlaggedSum[]> {
  return db.all(
    shape({
      isSandbox: flag(),
      reason: text().as<FlagReason>(),
      currency: text(),
      transactions: bigint(),
      unapplied: sum(),
    }),
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

/** Provider events since `since` that did not match what was opened, so that nothing was applied; newest first. */
export async function listRefusedEvents(
  db: Queries,
  since: RealTime,
  limit: number,
): Promise<{ provider: string; eventId: string; transactionId: number | null; note: string | null }[]> {
  return db.all(
    shape({ provider: text(), eventId: text(), transactionId: bigint().nullable(), note: text().nullable() }),
    `SELECT provider, event_id AS eventId, transaction_id AS transactionId, note FROM provider_events
     WHERE outcome = 'refused' AND received_at >= ? ORDER BY received_at DESC LIMIT ?`,
    [since, limit],
  )
}

/** The apps that a statistic covers. */
export interface AppScope {
  readonly appIds: readonly number[]
}

/** Subscriptions by state, each by its app's own time. */
export type SubscriptionCounts = Readonly<
  Record<
    | 'active'
    | 'in_trial'
    | 'lifetime'
    | 'expiring_in_7_days'
    | 'expiring_in_30_days'
    | 'expired'
    | 'in_grace'
    | 'lapsed',
    number
  >
>

/** The app's own time in SQL, from the real one as a parameter. */
const APP_NOW = 'DATE_ADD(CAST(? AS DATETIME(3)), INTERVAL a.clock_offset_ms * 1000 MICROSECOND)'

export async function countSubscriptions(
  db: Queries,
  { appIds }: AppScope,
  now: RealTime,
  graceDays: number,
): Promise<SubscriptionCounts> {
  const count = bigint().nullable()
  const counts = await db.one(
    shape({
      active: count,
      in_trial: count,
      lifetime: count,
      expiring_in_7_days: count,
      expiring_in_30_days: count,
      expired: count,
      in_grace: count,
      lapsed: count,
    }),
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
  // A sum over no rows is null.
  return Object.fromEntries(Object.entries(counts ?? {}).map(([name, sum]) => [name, sum ?? 0])) as SubscriptionCounts
}

/** Money of one currency and month (`2026-03`, UTC); amounts in the smallest unit. */
export interface CashMonth {
  readonly currency: string
  readonly month: string
  readonly payments: number
  readonly received: bigint
  readonly refunded: bigint
}

/**
 * Money received, by the month in which it was paid, once its payer is known; and money refunded, by the month of the refund. Oldest month
 * first.
 */
export async function listCashMonths(db: Queries, { appIds }: AppScope): Promise<CashMonth[]> {
  return db.all(
    shape({ currency: text(), month: text(), payments: bigint(), received: sum(), refunded: sum() }),
    `SELECT x.currency, x.month, SUM(x.payments) AS payments, SUM(x.received) AS received, SUM(x.refunded) AS refunded
     FROM (SELECT currency, DATE_FORMAT(paid_at, '%Y-%m') AS month, 1 AS payments, amount AS received, 0 AS refunded
           FROM payments WHERE app_id IN (?) AND end_user_id IS NOT NULL
           UNION ALL
           SELECT p.currency, DATE_FORMAT(r.ended_at, '%Y-%m'), 0, 0, r.amount
           FROM refunds r JOIN payments p ON p.id = r.payment_id
           WHERE p.app_id IN (?) AND p.end_user_id IS NOT NULL AND r.status = 'succeeded') x
     GROUP BY x.currency, x.month ORDER BY x.currency, x.month`,
    [appIds, appIds],
  )
}

/** A paid period that has not ended. All times are in the app's own time. */
export interface PaidPeriod {
  readonly id: number
  readonly currency: string
  readonly amount: number
  readonly start: AppTime
  readonly end: AppTime
  readonly now: AppTime
}

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
    shape({ id: id(), currency: text(), amount: bigint(), start: appTime(), end: appTime(), now: appTime() }),
    `SELECT l.id, t.currency, t.amount_used AS amount,
       CASE WHEN l.kind = 'extended' THEN l.end_before ELSE l.period_start END AS start, l.end_after AS end, ${APP_NOW} AS now
     FROM payment_applications l
     JOIN subscriptions s ON s.id = l.subscription_id
     JOIN apps a ON a.id = l.app_id
     JOIN transactions t ON t.id = l.transaction_id
     WHERE l.id > ? AND l.app_id IN (?) AND s.current_period_end IS NOT NULL AND t.status = 'completed'
       AND l.end_after > DATE_ADD(CAST(? AS DATETIME(3)), INTERVAL a.clock_offset_ms * 1000 MICROSECOND)
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
  const ended = await db.one(
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
  return ended ?? { renewed: 0, lapsed: 0 }
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

/** A table whose rows are an app's. */
export type AppTable<R extends AppRow> = Table<R>

export interface AppRow {
  readonly id: number
  readonly appId: number | null
}

/** A page of an app's rows of any table that has an app id, ordered by their own ids. */
export async function listRowsAfter<R extends AppRow>(
  db: Queries,
  source: AppTable<R>,
  appId: number,
  afterId: number,
  limit: number,
): Promise<R[]> {
  return db.all(source, 'WHERE app_id = ? AND id > ? ORDER BY id LIMIT ?', [appId, afterId, limit])
}
