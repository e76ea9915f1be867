import { bigint, exact, id, int, realTime, words } from '#db/columns.ts'
import { shape, table, type Row } from '#db/table.ts'
import { insertedNew } from '#db/database-error.ts'
import { where } from '#db/conditions.ts'
import type { Queries } from '#db/queries.ts'
import type { Tx } from '#commands/transaction.ts'
import { addMs, MINUTE_MS, type RealTime } from '#shared/time.ts'
import { providerEvents } from '#transactions/store.ts'

export type SessionStatus = 'opening' | 'open' | 'paid' | 'closed'

/** What was opened at a provider for a transaction. The row is there before the provider is called. Times are real. */
export const providerSessions = table('provider_sessions', {
  id: id(),
  appId: bigint('app_id'),
  transactionId: bigint('transaction_id'),
  /** The provider's code. */
  provider: exact('provider', 32),
  /**
   * What the provider knows it by: from the start where it is ours to choose; where the provider chooses it, null until its answer is
   * recorded.
   */
  reference: exact('reference', 191).nullable(),
  url: exact('url', 2048).nullable(),
  amount: bigint('amount'),
  currency: exact('currency', 3),
  status: exact('status', 16).as<SessionStatus>(),
  expiresAt: realTime('expires_at'),
  lookups: int('lookups'),
  /** Look-ups that failed since the last that did not. */
  failures: int('failures'),
  nextLookupAt: realTime('next_lookup_at').nullable(),
  createdAt: realTime('created_at'),
  updatedAt: realTime('updated_at'),
})
export type ProviderSession = Row<typeof providerSessions>

/** Those that may still be paid, as far as we know. */
const PAYABLE: SessionStatus[] = ['opening', 'open']
/** How soon a session whose transaction was completed in another way is claimed again, where the worker that had it died. */
const CLOSE_AGAIN_MS = 2 * MINUTE_MS

export async function insertProviderSession(tx: Tx, row: Omit<ProviderSession, 'id'>): Promise<ProviderSession> {
  return { ...row, id: await tx.insert(providerSessions, row) }
}

export async function findProviderSession(
  db: Queries,
  provider: string,
  reference: string,
): Promise<ProviderSession | null> {
  return db.one(providerSessions, 'WHERE provider = ? AND reference = ?', [provider, reference])
}

export async function getProviderSession(db: Queries, sessionId: number): Promise<ProviderSession> {
  const session = await db.one(providerSessions, 'WHERE id = ?', [sessionId])
  if (!session) throw new Error(`provider session ${sessionId} is not there`)
  return session
}

/** The newest session of the transaction at the provider that may still be paid; null where there is none. */
export async function findPayableSession(
  db: Queries,
  transactionId: number,
  provider: string,
): Promise<ProviderSession | null> {
  return db.one(
    providerSessions,
    'WHERE transaction_id = ? AND provider = ? AND status IN (?) ORDER BY created_at DESC, id DESC LIMIT 1',
    [transactionId, provider, PAYABLE],
  )
}

export async function listPayableSessions(db: Queries, transactionId: number): Promise<ProviderSession[]> {
  return db.all(providerSessions, 'WHERE transaction_id = ? AND status IN (?) ORDER BY created_at, id', [
    transactionId,
    PAYABLE,
  ])
}

/** Changes a session that is in one of the statuses `from`; false where it is not, any more. */
export async function updateSessionIn(
  tx: Tx,
  sessionId: number,
  from: readonly SessionStatus[],
  changes: Partial<Omit<ProviderSession, 'id' | 'appId' | 'transactionId'>>,
): Promise<boolean> {
  const found = await tx.update(providerSessions, { id: sessionId, status: from }, { ...changes, updatedAt: tx.now })
  return found === 1
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
 * another way. One statement: a row read after it was found due may have been claimed in between, and would be claimed again.
 */
export async function listDueSessions(db: Queries, filter: DueFilter): Promise<ProviderSession[]> {
  const { dueAt, appId, afterId, limit } = filter
  const due = where(
    ['s.status IN (?)', PAYABLE],
    ['s.id > ?', afterId],
    appId === null ? null : ['s.app_id = ?', appId],
    dueAt && [
      `(s.next_lookup_at <= ? OR
        (t.status <> 'pending' AND s.failures = 0 AND (s.lookups = 0 OR s.updated_at <= ?)))`,
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

/** Takes the session's next look-up at `now`, by the database's clock, and says when the one after it is due; false where another worker took it. */
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

/** Records how the look-up went that the caller has claimed; `nextLookupAt` stays where it is null. */
export async function recordLookup(
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

/** Has the session looked up soon. */
export async function hastenLookup(tx: Tx, sessionId: number, nextLookupAt: RealTime): Promise<void> {
  await tx.update(providerSessions, { id: sessionId, status: PAYABLE }, { nextLookupAt, updatedAt: tx.now })
}

/** All that was opened at providers for a transaction, the first first. */
export async function listProviderSessionsOf(db: Queries, transactionId: number): Promise<ProviderSession[]> {
  return db.all(providerSessions, 'WHERE transaction_id = ? ORDER BY id', [transactionId])
}

/** Whether the provider's event was taken before: a cheap answer to most repetitions, before a unique key decides over the rest. */
export async function wasToldBefore(db: Queries, provider: string, eventId: string): Promise<boolean> {
  return (await db.one(providerEvents, 'WHERE provider = ? AND event_id = ?', [provider, eventId])) !== null
}

/** An app's account at a provider. */
export interface Account {
  readonly appId: number
  readonly provider: string
}

/** An account of which nothing is asked for a while, since its provider did not answer or refused its credentials. */
export const providerPauses = table('provider_pauses', {
  id: id(),
  appId: bigint('app_id'),
  provider: exact('provider', 32),
  /** In a row, each with a pause. */
  failures: int('failures'),
  /** Of the last failure, for operators. */
  reason: words('reason', 191),
  since: realTime('since'),
  pausedUntil: realTime('paused_until'),
})
export type ProviderPause = Row<typeof providerPauses>

/** Every account's last pause that no answer has ended, over or not. */
export async function listPauses(db: Queries): Promise<ProviderPause[]> {
  return db.all(providerPauses, 'ORDER BY app_id, provider')
}

export async function findPause(db: Queries, { appId, provider }: Account): Promise<ProviderPause | null> {
  return db.one(providerPauses, 'WHERE app_id = ? AND provider = ?', [appId, provider])
}

/** Begins a pause, unless one is under way: of several failures at one time only the first makes the next pause longer. */
export async function beginPause(tx: Tx, pause: Omit<ProviderPause, 'id'>, now: RealTime): Promise<void> {
  const isNew = await insertedNew('provider_pauses_account', tx.insert(providerPauses, pause))
  if (!isNew) {
    await tx.run(
      `UPDATE provider_pauses SET failures = ?, reason = ?, since = ?, paused_until = ?
       WHERE app_id = ? AND provider = ? AND paused_until <= ?`,
      [pause.failures, pause.reason, pause.since, pause.pausedUntil, pause.appId, pause.provider, now],
    )
  }
}

/** The account answered: its next failure is the first one. */
export async function endPause(tx: Tx, { appId, provider }: Account): Promise<void> {
  await tx.run('DELETE FROM provider_pauses WHERE app_id = ? AND provider = ?', [appId, provider])
}

/** How many sessions failed to be looked up or closed this often in a row, and a transaction of one of them. */
export async function countFailing(
  db: Queries,
  failures: number,
): Promise<{ count: number; transactionId: number | null }> {
  const failing = await db.one(
    shape({ count: bigint(), transactionId: bigint().nullable() }),
    `SELECT COUNT(*) AS count,
       (SELECT transaction_id FROM provider_sessions WHERE status IN (?) AND failures >= ? ORDER BY id DESC LIMIT 1) AS transactionId
     FROM provider_sessions WHERE status IN (?) AND failures >= ?`,
    [PAYABLE, failures, PAYABLE, failures],
  )
  return failing ?? { count: 0, transactionId: null }
}
