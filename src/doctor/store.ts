import { bigint, flag, realTime, text } from '#db/columns.ts'
import { IS_READ_ONLY } from '#db/session.ts'
import { shape, type Row } from '#db/table.ts'
import type { Queries } from '#db/queries.ts'
import { FIRST_DUE } from '#webhooks/claims/store.ts'
import { REPORTS_CHANGE, type DeliveryStatus } from '#webhooks/store.ts'
import type { RealTime } from '#shared/time.ts'

const SERVER_FACTS = shape({ version: text(), now: realTime(), isReadOnly: flag() })
/** The server as a session sees it, and its clock in UTC. */
export type ServerFacts = Row<typeof SERVER_FACTS>

export async function readServerFacts(db: Queries): Promise<ServerFacts> {
  return db.single(SERVER_FACTS, `SELECT VERSION() AS version, UTC_TIMESTAMP(3) AS now, ${IS_READ_ONLY} AS isReadOnly`)
}

const DURABILITY = shape({ flushesLog: bigint(), hasBinaryLog: flag(), syncsBinaryLog: bigint() })

/** What the server does so that a committed payment survives a loss of power. */
export async function readDurability(db: Queries): Promise<Row<typeof DURABILITY>> {
  return db.single(
    DURABILITY,
    `SELECT @@GLOBAL.innodb_flush_log_at_trx_commit AS flushesLog, @@GLOBAL.log_bin AS hasBinaryLog, @@GLOBAL.sync_binlog AS syncsBinaryLog`,
  )
}

/** The folders of the server's data and logs, as the server names them. */
export async function readDataFolders(db: Queries): Promise<string[]> {
  const found = await db.single(
    shape({ data: text(), redo: text().nullable(), binaryLog: text().nullable() }),
    `SELECT @@datadir AS data, NULLIF(@@innodb_log_group_home_dir, './') AS redo, @@log_bin_basename AS binaryLog`,
  )
  return [found.data, found.redo, found.binaryLog]
    .filter((folder) => folder !== null)
    .filter((folder) => folder.startsWith('/'))
}

const WEBHOOK_STANDING = shape({
  appId: bigint(),
  failed: bigint(),
  retrying: bigint(),
  /** The first failed attempt since the newest event that the app acknowledged was delivered; null if none failed. */
  failingSince: realTime().nullable(),
  lastError: text().nullable(),
})
/** The state of an app's webhooks. Counts are of undelivered events that were attempted. */
export type WebhookStanding = Row<typeof WEBHOOK_STANDING>

/** Events of all apps, by an index that begins with the app: no index covers all apps. */
function eventsIn(status: DeliveryStatus, columns: string): string {
  return `SELECT ${columns} FROM apps a STRAIGHT_JOIN events e FORCE INDEX (events_app_due)
          ON e.app_id = a.id AND e.delivery_status = '${status}'`
}

/** The standing of every app that has events failed, or due again after a failure. */
export async function listWebhookStandings(db: Queries): Promise<WebhookStanding[]> {
  const columns = 'e.id, e.app_id, e.delivery_status, e.last_error'
  const rows = await db.all(
    WEBHOOK_STANDING,
    `SELECT e.app_id AS appId, SUM(e.delivery_status = 'failed') AS failed,
       SUM(e.delivery_status = 'pending') AS retrying,
       MIN((SELECT MIN(t.started_at) FROM delivery_attempts t FORCE INDEX (delivery_attempts_event)
            WHERE t.event_id = e.id AND t.error IS NOT NULL AND t.started_at > COALESCE(
              (SELECT d.delivered_at FROM events d FORCE INDEX (events_app_due)
               WHERE d.app_id = e.app_id AND d.delivery_status = 'delivered' AND d.next_attempt_at IS NULL
               ORDER BY d.id DESC LIMIT 1), '1000-01-01'))) AS failingSince,
       MAX(CONCAT(LPAD(e.id, 20, '0'), ' ', e.last_error)) AS lastError
     FROM (${eventsIn('failed', columns)} WHERE ${REPORTS_CHANGE} UNION ALL ${eventsIn('pending', columns)} WHERE e.last_error IS NOT NULL) e
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
  return db.single(
    shape({ depth: bigint(), oldestDueAt: realTime().nullable() }),
    `SELECT (SELECT COUNT(*) FROM (${eventsIn('pending', 'e.id')} LIMIT ?) waiting) AS depth,
       (SELECT MIN(dueAt) FROM (${FIRST_DUE}) waiting) AS oldestDueAt`,
    [limit],
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
