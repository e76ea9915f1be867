import { bigint, exact, flag, id, int, realTime, text, words } from '#db/columns.ts'
import { shape, table, type Row } from '#db/table.ts'
import { insertedNew } from '#db/database-error.ts'
import { where } from '#db/conditions.ts'
import type { Queries } from '#db/queries.ts'
import type { Tx } from '#commands/transaction.ts'
import { addMs, MINUTE_MS, type RealTime } from '#shared/time.ts'

/** `processing`: the payer is done; the money is on its way, or will fail to arrive (a debit). */
export type SessionStatus = 'opening' | 'open' | 'processing' | 'paid' | 'closed'

/** A session at a provider for a transaction. The row is committed before the provider is called. Times are real. */
export const providerSessions = table('provider_sessions', {
  id: id(),
  appId: bigint('app_id'),
  transactionId: bigint('transaction_id'),
  /** The provider's code. */
  provider: exact('provider', 32),
  providerAccountId: bigint('provider_account_id'),
  /** Its id at the provider: set from the start if we choose it; if the provider chooses it, null until its answer is recorded. */
  reference: exact('reference', 191).nullable(),
  url: exact('url', 2048).nullable(),
  amount: bigint('amount'),
  currency: exact('currency', 3),
  status: exact('status', 16).as<SessionStatus>(),
  expiresAt: realTime('expires_at'),
  lookups: int('lookups'),
  /** Failed look-ups in a row. */
  failures: int('failures'),
  nextLookupAt: realTime('next_lookup_at').nullable(),
  createdAt: realTime('created_at'),
  updatedAt: realTime('updated_at'),
})
export type ProviderSession = Row<typeof providerSessions>

/** Sessions that may still be paid. */
export const PAYABLE: readonly SessionStatus[] = ['opening', 'open', 'processing']
/** When a session whose transaction was completed in another way is claimed again, in case the worker that claimed it died. */
const CLOSE_AGAIN_MS = 2 * MINUTE_MS

export async function insertProviderSession(tx: Tx, row: Omit<ProviderSession, 'id'>): Promise<ProviderSession> {
  return { ...row, id: await tx.insert(providerSessions, row) }
}

const REPORTED_SESSION = providerSessions.joined('s', {
  /** Whether the provider's event was recorded before: a cheap answer to most copies; a unique key catches the others. */
  isEventKnown: flag('e.id IS NOT NULL'),
})
/** The session of a provider's event. */
export type ReportedSession = Row<typeof REPORTED_SESSION>

/** The session of this reference; `eventId` null if the event has none. */
export async function findReportedSession(
  db: Queries,
  provider: string,
  { reference, eventId }: { readonly reference: string; readonly eventId: string | null },
): Promise<ReportedSession | null> {
  return db.one(
    REPORTED_SESSION,
    `LEFT JOIN provider_events e ON e.provider = s.provider AND e.event_id = ?
     WHERE s.provider = ? AND s.reference = ?`,
    [eventId, provider, reference],
  )
}

export async function getProviderSession(db: Queries, sessionId: number): Promise<ProviderSession> {
  const session = await db.one(providerSessions, 'WHERE id = ?', [sessionId])
  if (!session) throw new Error(`provider session ${sessionId} does not exist`)
  return session
}

/** The newest session of the transaction that the account is opening or has open; null if there is none. */
export async function findOpenSession(
  db: Queries,
  transactionId: number,
  providerAccountId: number,
): Promise<ProviderSession | null> {
  return db.one(
    providerSessions,
    `WHERE transaction_id = ? AND provider_account_id = ? AND status IN ('opening', 'open')
     ORDER BY created_at DESC, id DESC LIMIT 1`,
    [transactionId, providerAccountId],
  )
}

export async function listPayableSessions(db: Queries, transactionId: number): Promise<ProviderSession[]> {
  return db.all(providerSessions, 'WHERE transaction_id = ? AND status IN (?) ORDER BY created_at, id', [
    transactionId,
    PAYABLE,
  ])
}

/** Whether a pending payment is being processed. */
export async function hasProcessingSession(
  db: Queries,
  { id: transactionId, status }: { readonly id: number; readonly status: string },
): Promise<boolean> {
  if (status !== 'pending') return false
  const sessions = await listPayableSessions(db, transactionId)
  return sessions.some((session) => session.status === 'processing')
}

/** Changes a session that is still in one of the statuses `from`; returns false otherwise. */
export async function updateSessionIn(
  tx: Tx,
  sessionId: number,
  from: readonly SessionStatus[],
  changes: Partial<Omit<ProviderSession, 'id' | 'appId' | 'transactionId'>>,
): Promise<boolean> {
  const found = await tx.update(providerSessions, { id: sessionId, status: from }, { ...changes, updatedAt: tx.now })
  return found === 1
}

/**
 * Ends a paid session; returns whether the transaction has others that may still be paid. One statement does both: it matches the others,
 * too, and leaves them as they are. Call it under the end user's lock, as sessions are opened under it.
 */
export async function endPaidSession(
  tx: Tx,
  { id: sessionId, transactionId }: Pick<ProviderSession, 'id' | 'transactionId'>,
): Promise<boolean> {
  const matched = await tx.run(
    `UPDATE provider_sessions SET next_lookup_at = IF(id = ?, NULL, next_lookup_at), updated_at = IF(id = ?, ?, updated_at),
       status = IF(id = ?, 'paid', status)
     WHERE transaction_id = ? AND (id = ? OR status IN ('opening', 'open', 'processing'))`,
    [sessionId, sessionId, tx.now, sessionId, transactionId, sessionId],
  )
  return matched > 1
}

export interface DueFilter {
  /** Only look-ups that are due at this instant; null for all sessions that may still be paid. */
  readonly dueAt: RealTime | null
  readonly appId: number | null
  readonly afterId: number
  readonly limit: number
}

/**
 * Sessions to look up, by id. A session is due at its time, and, unless its last look-up failed, once its transaction was completed in
 * another way. One that is processing cannot be closed, so only its time counts. One statement, so that the rows are as they were when
 * they were due: a claim compares them.
 */
export async function listDueSessions(db: Queries, filter: DueFilter): Promise<ProviderSession[]> {
  const { dueAt, appId, afterId, limit } = filter
  const due = where(
    ['s.status IN (?)', PAYABLE],
    ['s.id > ?', afterId],
    appId === null ? null : ['s.app_id = ?', appId],
    dueAt && [
      `(s.next_lookup_at <= ? OR
        (t.status <> 'pending' AND s.status <> 'processing' AND s.failures = 0 AND (s.lookups = 0 OR s.updated_at <= ?)))`,
      dueAt,
      addMs(dueAt, -CLOSE_AGAIN_MS),
    ],
  )
  return db.all(
    providerSessions.as('s'),
    `JOIN transactions t ON t.id = s.transaction_id ${due.sql} ORDER BY s.id LIMIT ?`,
    [...due.params, limit],
  )
}

/** Claims the session's look-up at `now`, by the database's clock, and sets when the next one is due; returns false if another worker did. */
export async function claimLookup(
  tx: Tx,
  session: ProviderSession,
  now: RealTime,
  nextLookupAt: RealTime,
): Promise<boolean> {
  return (
    (await tx.update(
      providerSessions,
      { id: session.id, lookups: session.lookups, status: PAYABLE },
      { lookups: session.lookups + 1, nextLookupAt, updatedAt: now },
    )) === 1
  )
}

/** Records the result of a claimed look-up; `nextLookupAt` null leaves the column as it is. */
export async function recordLookupResult(
  tx: Tx,
  session: Pick<ProviderSession, 'id' | 'lookups'>,
  failures: number,
  nextLookupAt: RealTime | null,
): Promise<void> {
  await tx.update(
    providerSessions,
    { id: session.id, lookups: session.lookups, status: PAYABLE },
    { failures, ...(nextLookupAt ? { nextLookupAt } : {}) },
  )
}

/** Moves the session's next look-up to `nextLookupAt`; false if the session is over. */
export async function expediteLookup(tx: Tx, sessionId: number, nextLookupAt: RealTime): Promise<boolean> {
  const changes = { nextLookupAt, updatedAt: tx.now }
  return (await tx.update(providerSessions, { id: sessionId, status: PAYABLE }, changes)) === 1
}

/** All sessions of a transaction, the oldest first. */
export async function listProviderSessionsOf(db: Queries, transactionId: number): Promise<ProviderSession[]> {
  return db.all(providerSessions, 'WHERE transaction_id = ? ORDER BY id', [transactionId])
}

/**
 * An app's credentials at a provider, by version. What was opened under a version is looked up, closed and refunded with it; the version
 * that is not retired opens new sessions. `credentials` is encrypted JSON, null once it was forgotten.
 */
export const providerAccounts = table('provider_accounts', {
  id: id(),
  appId: bigint('app_id'),
  method: exact('method', 32),
  version: int('version'),
  credentials: text('credentials').nullable(),
  createdAt: realTime('created_at'),
  retiredAt: realTime('retired_at').nullable(),
})
export type ProviderAccountRow = Row<typeof providerAccounts>

/** The encryption context of the credentials of an app's payment method, in every version. */
export function credentialsPlace(appId: number, method: string): string {
  return `payment_methods.credentials:${appId}:${method}`
}

export async function insertProviderAccount(tx: Tx, row: Omit<ProviderAccountRow, 'id'>): Promise<number> {
  return tx.insert(providerAccounts, row)
}

export async function findProviderAccount(db: Queries, accountId: number): Promise<ProviderAccountRow | null> {
  return db.one(providerAccounts, 'WHERE id = ?', [accountId])
}

/** The versions of an app's method, the newest first. */
export async function listVersions(db: Queries, appId: number, method: string): Promise<ProviderAccountRow[]> {
  return db.all(providerAccounts, 'WHERE app_id = ? AND method = ? ORDER BY version DESC', [appId, method])
}

export async function retireProviderAccount(tx: Tx, accountId: number): Promise<void> {
  await tx.update(providerAccounts, { id: accountId, retiredAt: null }, { retiredAt: tx.now })
}

/** Erases the credentials and closes the open sessions under them. Returns how many sessions it closed. */
export async function forgetProviderAccount(tx: Tx, accountId: number): Promise<number> {
  await tx.update(providerAccounts, { id: accountId }, { credentials: null })
  await endPause(tx, accountId)
  const sessions = { providerAccountId: accountId, status: PAYABLE }
  return tx.update(providerSessions, sessions, { status: 'closed', nextLookupAt: null, updatedAt: tx.now })
}

/** Whether part of a payment can still be refunded, or is being refunded. */
const IS_REFUNDABLE = `p.amount > (
  SELECT COALESCE(SUM(r.amount), 0) FROM refunds r WHERE r.payment_id = p.id AND r.status = 'succeeded')`

/**
 * The accounts of a method that are in use: those that open new sessions, and those with sessions that may be paid, payments that may be
 * refunded, or refunds made after `mayFailFrom`. By app, the newest first; `appId` null for all apps.
 */
export async function listAccountsInUse(
  db: Queries,
  method: string,
  { appId, mayFailFrom }: { readonly appId: number | null; readonly mayFailFrom: RealTime },
): Promise<ProviderAccountRow[]> {
  const { sql, params } = where(
    ['a.method = ?', method],
    appId === null ? null : ['a.app_id = ?', appId],
    ['a.credentials IS NOT NULL'],
    [
      `(a.retired_at IS NULL
        OR EXISTS (SELECT 1 FROM provider_sessions s WHERE s.provider_account_id = a.id AND s.status IN (?))
        OR EXISTS (SELECT 1 FROM payments p WHERE p.provider_account_id = a.id AND ${IS_REFUNDABLE})
        OR EXISTS (SELECT 1 FROM payments p JOIN refunds r ON r.payment_id = p.id
          WHERE p.provider_account_id = a.id AND r.created_at > ?))`,
      PAYABLE,
      mayFailFrom,
    ],
  )
  return db.all(providerAccounts.as('a'), `${sql} ORDER BY a.app_id, a.version DESC`, params)
}

const ACCOUNT_USE = shape({ openSessions: bigint(), refundablePayments: bigint() })

/** How much still depends on an account. */
export async function countAccountUse(db: Queries, accountId: number): Promise<Row<typeof ACCOUNT_USE>> {
  return db.single(
    ACCOUNT_USE,
    `SELECT
       (SELECT COUNT(*) FROM provider_sessions WHERE provider_account_id = ? AND status IN (?)) AS openSessions,
       (SELECT COUNT(*) FROM payments p WHERE p.provider_account_id = ? AND ${IS_REFUNDABLE}) AS refundablePayments`,
    [accountId, PAYABLE, accountId],
  )
}

/** An app's account at a provider. */
export type Account = Pick<ProviderSession, 'appId' | 'provider' | 'providerAccountId'>

/** A pause of an account whose provider did not answer or refused its credentials. */
export const providerPauses = table('provider_pauses', {
  id: id(),
  appId: bigint('app_id'),
  provider: exact('provider', 32),
  providerAccountId: bigint('provider_account_id'),
  /** Failures in a row, each with a pause. */
  failures: int('failures'),
  /** Of the last failure, for operators. */
  reason: words('reason', 191),
  since: realTime('since'),
  pausedUntil: realTime('paused_until'),
})
export type ProviderPause = Row<typeof providerPauses>

/** All pauses, expired or not. An account's pause is deleted once its provider answers. */
export async function listPauses(db: Queries): Promise<ProviderPause[]> {
  return db.all(providerPauses, 'ORDER BY app_id, provider')
}

export async function findPause(db: Queries, providerAccountId: number): Promise<ProviderPause | null> {
  return db.one(providerPauses, 'WHERE provider_account_id = ?', [providerAccountId])
}

/** Begins a pause, unless one is under way: of several failures at once, only the first lengthens the next pause. */
export async function beginPause(tx: Tx, pause: Omit<ProviderPause, 'id'>, now: RealTime): Promise<void> {
  const isNew = await insertedNew('provider_pauses_account', tx.insert(providerPauses, pause))
  if (!isNew) {
    await tx.run(
      `UPDATE provider_pauses SET failures = ?, reason = ?, since = ?, paused_until = ?
       WHERE provider_account_id = ? AND paused_until <= ?`,
      [pause.failures, pause.reason, pause.since, pause.pausedUntil, pause.providerAccountId, now],
    )
  }
}

/** Deletes the pause of an account. */
export async function endPause(tx: Tx, providerAccountId: number): Promise<void> {
  await tx.run('DELETE FROM provider_pauses WHERE provider_account_id = ?', [providerAccountId])
}

/** How many sessions failed this often in a row, and the transaction of the newest one. */
export async function countFailing(
  db: Queries,
  failures: number,
): Promise<{ count: number; transactionId: number | null }> {
  return db.single(
    shape({ count: bigint(), transactionId: bigint().nullable() }),
    `SELECT COUNT(*) AS count,
       (SELECT transaction_id FROM provider_sessions WHERE status IN (?) AND failures >= ? ORDER BY id DESC LIMIT 1) AS transactionId
     FROM provider_sessions WHERE status IN (?) AND failures >= ?`,
    [PAYABLE, failures, PAYABLE, failures],
  )
}
