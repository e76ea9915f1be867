import { bigint, exact, flag, id, int, json, realTime, sum, text, words } from '#db/columns.ts'
import { insertedNew, unlessDuplicate } from '#db/database-error.ts'
import type { Queries } from '#db/queries.ts'
import { shape, table, type Row } from '#db/table.ts'
import type { Tx } from '#commands/transaction.ts'
import type { RealTime } from '#shared/time.ts'
import { REPORTS_CHANGE } from '#webhooks/store.ts'
import type { AlertKind } from './kinds.ts'

/** Times are by the database's clock. */
export const alerts = table('alerts', {
  id: id(),
  kind: exact('kind', 32).as<AlertKind>(),
  subject: exact('subject', 191),
  /** Kind and subject while it is open, which makes it unique; null once it is closed. */
  openKey: exact('open_key', 255).nullable(),
  text: words('text', 1000),
  /** When the condition began, which may be before a daemon noticed it. */
  since: realTime('since'),
  openedAt: realTime('opened_at'),
  closedAt: realTime('closed_at').nullable(),
  /** Whether messages about its beginning were written; false while its kind is muted. */
  isAnnounced: flag('is_announced'),
  /** When the first message about it was sent. */
  notifiedAt: realTime('notified_at').nullable(),
})
export type Alert = Row<typeof alerts>

export type Channel = 'mail' | 'webhook'
export type MessageType = 'alert.opened' | 'alert.closed' | 'alert.digest' | 'alert.test'

/** A message to operators, by one channel. It waits until it is sent, or given up. */
export const alertMessages = table('alert_messages', {
  id: id(),
  /** Null for a digest. */
  alertId: bigint('alert_id').nullable(),
  channel: exact('channel', 16).as<Channel>(),
  type: exact('type', 16).as<MessageType>(),
  kind: exact('kind', 32),
  subject: exact('subject', 191),
  text: text('text'),
  since: realTime('since'),
  createdAt: realTime('created_at'),
  attempts: int('attempts'),
  /** Null once it was sent or given up. A claim moves it. */
  nextTryAt: realTime('next_try_at').nullable(),
  sentAt: realTime('sent_at').nullable(),
  lastError: words('last_error', 500).nullable(),
})
export type AlertMessage = Row<typeof alertMessages>

/** Kinds of alerts that operators have muted. */
export const alertMutes = table('alert_mutes', {
  id: id(),
  kind: exact('kind', 32).as<AlertKind>(),
  mutedUntil: realTime('muted_until'),
})

/** Periodic work that only one of several daemons does: `ledger`, `digest`. */
export const alertChores = table('alert_chores', {
  id: id(),
  name: exact('name', 32),
  begunAt: realTime('begun_at'),
  /** What the last finished run found. */
  result: json<object>('result').nullable(),
})
export type AlertChore = Row<typeof alertChores>

export async function listOpenAlerts(db: Queries): Promise<Alert[]> {
  return db.all(alerts, 'WHERE closed_at IS NULL ORDER BY id')
}

/** The open alerts, and those that were closed since `since`: the newest first. */
export async function listAlertsSince(db: Queries, since: RealTime, limit: number): Promise<Alert[]> {
  return db.all(alerts, 'WHERE closed_at IS NULL OR closed_at >= ? ORDER BY closed_at IS NULL DESC, id DESC LIMIT ?', [
    since,
    limit,
  ])
}

/** The id of the new alert; null if another daemon opened it. */
export async function insertAlert(tx: Tx, row: Omit<Alert, 'id'>): Promise<number | null> {
  return unlessDuplicate('alerts_open_key', tx.insert(alerts, row))
}

/** Closes an alert; false if another daemon did. */
export async function markClosed(tx: Tx, alertId: number, at: RealTime): Promise<boolean> {
  return (await tx.update(alerts, { id: alertId, closedAt: null }, { closedAt: at, openKey: null })) === 1
}

/** Marks that messages about an open alert were written; false if another daemon did. */
export async function markAnnounced(tx: Tx, alertId: number): Promise<boolean> {
  return (await tx.update(alerts, { id: alertId, isAnnounced: false, closedAt: null }, { isAnnounced: true })) === 1
}

export async function markNotified(db: Queries, alertId: number, at: RealTime): Promise<void> {
  await db.update(alerts, { id: alertId, notifiedAt: null }, { notifiedAt: at })
}

export async function insertMessage(tx: Tx, row: Omit<AlertMessage, 'id'>): Promise<void> {
  await tx.insert(alertMessages, row)
}

/**
 * The due messages, the oldest first. Messages of a muted kind wait until it is no longer muted. A message about an alert waits for the
 * earlier messages about it.
 */
export async function listDueMessages(
  db: Queries,
  channel: Channel,
  now: RealTime,
  limit: number,
): Promise<AlertMessage[]> {
  return db.all(
    alertMessages,
    `WHERE channel = ? AND next_try_at <= ? AND kind NOT IN (SELECT kind FROM alert_mutes WHERE muted_until > ?)
       AND NOT EXISTS (SELECT 1 FROM alert_messages e WHERE e.alert_id = alert_messages.alert_id
                       AND e.channel = alert_messages.channel AND e.id < alert_messages.id AND e.next_try_at > ?)
     ORDER BY id LIMIT ?`,
    [channel, now, now, now, limit],
  )
}

/** Claims a message until `until`; false if another daemon did. */
export async function claimMessage(db: Queries, message: AlertMessage, until: RealTime): Promise<boolean> {
  const { id: messageId, nextTryAt, attempts } = message
  const changes = { nextTryAt: until, attempts: attempts + 1 }
  return (await db.update(alertMessages, { id: messageId, nextTryAt }, changes)) === 1
}

export async function updateMessage(
  db: Queries,
  messageId: number,
  changes: Pick<AlertMessage, 'nextTryAt' | 'sentAt' | 'lastError'>,
): Promise<void> {
  await db.update(alertMessages, { id: messageId }, changes)
}

/** The kinds that are muted at `now`, with the end of each. */
export async function listMutes(db: Queries, now: RealTime): Promise<ReadonlyMap<AlertKind, RealTime>> {
  const rows = await db.all(alertMutes, 'WHERE muted_until > ?', [now])
  return new Map(rows.map(({ kind, mutedUntil }) => [kind, mutedUntil]))
}

export async function saveMute(tx: Tx, kind: AlertKind, mutedUntil: RealTime): Promise<void> {
  if (await insertedNew('alert_mutes_kind', tx.insert(alertMutes, { kind, mutedUntil }))) return
  await tx.update(alertMutes, { kind }, { mutedUntil })
}

export async function findChore(db: Queries, name: string): Promise<AlertChore | null> {
  return db.one(alertChores, 'WHERE name = ?', [name])
}

/** Begins a chore whose last run was `last`; false if another daemon did. */
export async function beginChore(db: Queries, name: string, last: AlertChore | null, at: RealTime): Promise<boolean> {
  if (!last) return insertedNew('alert_chores_name', db.insert(alertChores, { name, begunAt: at, result: null }))
  return (await db.update(alertChores, { id: last.id, begunAt: last.begunAt }, { begunAt: at })) === 1
}

export async function finishChore(db: Queries, name: string, result: object): Promise<void> {
  await db.update(alertChores, { name }, { result })
}

/** Removes up to `limit` alerts that were closed before `before`, and as many messages from before then. */
export async function deleteOldAlerts(tx: Tx, before: RealTime, limit: number): Promise<void> {
  await tx.run('DELETE FROM alert_messages WHERE created_at < ? ORDER BY id LIMIT ?', [before, limit])
  await tx.run('DELETE FROM alerts WHERE closed_at < ? ORDER BY closed_at LIMIT ?', [before, limit])
}

/** The apps that are not disabled and have failed events. */
export async function listFailedWebhooks(
  db: Queries,
): Promise<
  { readonly appId: number; readonly isSandbox: boolean; readonly failed: number; readonly since: RealTime }[]
> {
  return db.all(
    shape({ appId: bigint(), isSandbox: flag(), failed: bigint(), since: realTime() }),
    `SELECT STRAIGHT_JOIN a.id AS appId, a.is_sandbox AS isSandbox, COUNT(*) AS failed, MIN(e.written_at) AS since
     FROM apps a JOIN events e FORCE INDEX (events_app_due) ON e.app_id = a.id AND e.delivery_status = 'failed'
     WHERE a.disabled_at IS NULL AND a.webhook_url IS NOT NULL AND a.webhook_secret IS NOT NULL AND ${REPORTS_CHANGE}
     GROUP BY a.id, a.is_sandbox ORDER BY a.id`,
  )
}

/** The mails that wait for an operator and are about bank accounts that only sandbox apps use. */
export async function listMailsOfSandboxes(db: Queries): Promise<readonly { readonly id: number }[]> {
  return db.all(
    shape({ id: bigint() }),
    `SELECT m.id FROM bank_mails m WHERE m.review IS NOT NULL AND m.bank_account_id IN (
       SELECT a.bank_account_id FROM apps a WHERE a.bank_account_id IS NOT NULL
       GROUP BY a.bank_account_id HAVING MIN(a.is_sandbox) = 1)`,
  )
}

/** The bank accounts that live apps use and that have had no mail since `since`. */
export async function listQuietAccounts(
  db: Queries,
  since: RealTime,
): Promise<{ readonly accountId: number; readonly bank: string }[]> {
  return db.all(
    shape({ accountId: bigint(), bank: text() }),
    `SELECT b.id AS accountId, b.bank FROM bank_accounts b
     WHERE b.disabled_at IS NULL
       AND EXISTS (SELECT 1 FROM apps a WHERE a.bank_account_id = b.id AND a.is_sandbox = 0 AND a.disabled_at IS NULL)
       AND b.id NOT IN (SELECT m.bank_account_id FROM bank_mails m FORCE INDEX (bank_mails_received)
                        WHERE m.received_at > ? AND m.bank_account_id IS NOT NULL AND m.status <> 'rejected')
     ORDER BY b.id`,
    [since],
  )
}

/** How many mails an account had on each day before `now`, and when the last one arrived. Days are counted back: 0 is the last 24 hours. */
export async function countMailsByDay(
  db: Queries,
  accountId: number,
  now: RealTime,
  since: RealTime,
): Promise<{ readonly daysAgo: number; readonly mails: number; readonly last: RealTime }[]> {
  return db.all(
    shape({ daysAgo: bigint(), mails: bigint(), last: realTime() }),
    `SELECT FLOOR(TIMESTAMPDIFF(SECOND, m.received_at, ?) / 86400) AS daysAgo, COUNT(*) AS mails,
       MAX(m.received_at) AS last
     FROM bank_mails m FORCE INDEX (bank_mails_received)
     WHERE m.received_at > ? AND m.received_at <= ? AND m.bank_account_id = ? AND m.status <> 'rejected'
     GROUP BY daysAgo ORDER BY daysAgo`,
    [now, since, now, accountId],
  )
}

const METHOD_ATTEMPTS = shape({ appId: bigint(), method: text(), begun: bigint(), paid: sum() })
/** Payments that were begun with a method of a live app, and how many of them were completed by it within half an hour. */
export type MethodAttempts = Row<typeof METHOD_ATTEMPTS>

const IN_HALF_AN_HOUR = 't.completed_at <= DATE_ADD(t.created_at, INTERVAL 30 MINUTE)'
const OF_LIVE_APPS = `FROM apps a STRAIGHT_JOIN transactions t FORCE INDEX (transactions_app_created)
       ON t.app_id = a.id AND t.created_at >= ? AND t.created_at < ?`

/** Counts the payments that were begun from `from` to `until`. Live apps use real time. */
export async function countAttempts(db: Queries, from: RealTime, until: RealTime): Promise<MethodAttempts[]> {
  return db.all(
    METHOD_ATTEMPTS,
    `SELECT x.app_id AS appId, x.method, COUNT(*) AS begun, SUM(x.paid) AS paid FROM (
       SELECT t.app_id, t.id, s.provider AS method,
         MAX(COALESCE(t.provider_code = s.provider AND ${IN_HALF_AN_HOUR}, 0)) AS paid
       ${OF_LIVE_APPS} JOIN provider_sessions s ON s.transaction_id = t.id
       WHERE a.is_sandbox = 0 AND a.disabled_at IS NULL GROUP BY t.app_id, t.id, s.provider
       UNION ALL
       SELECT t.app_id, t.id, 'transfer', COALESCE(${IN_HALF_AN_HOUR}, 0)
       ${OF_LIVE_APPS}
       WHERE a.is_sandbox = 0 AND a.disabled_at IS NULL AND t.bank_page_opened_at IS NOT NULL
         AND NOT EXISTS (SELECT 1 FROM provider_sessions s WHERE s.transaction_id = t.id AND s.provider = t.provider_code)
     ) x GROUP BY x.app_id, x.method ORDER BY x.app_id, x.method`,
    [from, until, from, until],
  )
}
