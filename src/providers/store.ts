import { bigint, exact, flag, id, int, realTime } from '#db/columns.ts'
import { shape, table, type Row } from '#db/table.ts'
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

/** Closes the sessions under an account that may still be paid; returns how many. */
export async function closeSessionsUnder(tx: Tx, providerAccountId: number): Promise<number> {
  const sessions = { providerAccountId, status: PAYABLE }
  return tx.update(providerSessions, sessions, { status: 'closed', nextLookupAt: null, updatedAt: tx.now })
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
