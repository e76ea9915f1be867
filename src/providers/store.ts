import { EntitySchema, In, LessThanOrEqual, MoreThanOrEqual } from 'typeorm'
import { bigint, exact, id, instant, int, nullable, words } from '#db/columns.ts'
import { insertedId, insertedNew } from '#db/transaction.ts'
import type { ReadOnly, Tx } from '#db/transaction.ts'
import { addMs, MINUTE_MS } from '#shared/time.ts'
import { providerEvents } from '#transactions/store.ts'

export type SessionStatus = 'opening' | 'open' | 'paid' | 'closed'

/** What was opened at a provider for a transaction. The row is there before the provider is called. Times are real. */
export interface ProviderSession {
  id: number
  appId: number
  transactionId: number
  /** `stripe`, `payos` */
  provider: string
  /**
   * What the provider knows it by. Stripe: the Checkout Session's id, null until the answer is recorded. PayOS: the order code, which
   * is ours to choose and is there from the start.
   */
  reference: string | null
  url: string | null
  amount: number
  currency: string
  status: SessionStatus
  expiresAt: Date
  lookups: number
  /** Look-ups that failed since the last that did not. */
  failures: number
  nextLookupAt: Date | null
  createdAt: Date
  updatedAt: Date
}

export const providerSessions = new EntitySchema<ProviderSession>({
  name: 'provider_sessions',
  columns: {
    id,
    appId: bigint('app_id'),
    transactionId: bigint('transaction_id'),
    provider: exact('provider', 32),
    reference: nullable(exact('reference', 191)),
    url: nullable(exact('url', 2048)),
    amount: bigint('amount'),
    currency: exact('currency', 3),
    status: exact('status', 16),
    expiresAt: instant('expires_at'),
    lookups: int('lookups'),
    failures: int('failures'),
    nextLookupAt: nullable(instant('next_lookup_at')),
    createdAt: instant('created_at'),
    updatedAt: instant('updated_at'),
  },
})

/** Those that may still be paid, as far as we know. */
const PAYABLE: SessionStatus[] = ['opening', 'open']
/** How soon a session whose transaction was completed in another way is claimed again, where the worker that had it died. */
const CLOSE_AGAIN_MS = 2 * MINUTE_MS

export async function insertProviderSession(tx: Tx, row: Omit<ProviderSession, 'id'>): Promise<ProviderSession> {
  const result = await tx.manager.insert(providerSessions, row)
  return { ...row, id: insertedId(result) }
}

export async function findProviderSession(
  db: ReadOnly,
  provider: string,
  reference: string,
): Promise<ProviderSession | null> {
  return db.manager.findOneBy(providerSessions, { provider, reference })
}

export async function getProviderSession(db: ReadOnly, sessionId: number): Promise<ProviderSession> {
  return db.manager.findOneByOrFail(providerSessions, { id: sessionId })
}

/** The newest session of the transaction at the provider that may still be paid; null where there is none. */
export async function findPayableSession(
  db: ReadOnly,
  transactionId: number,
  provider: string,
): Promise<ProviderSession | null> {
  return db.manager.findOne(providerSessions, {
    where: { transactionId, provider, status: In(PAYABLE) },
    order: { createdAt: 'DESC', id: 'DESC' },
  })
}

export async function listPayableSessions(db: ReadOnly, transactionId: number): Promise<ProviderSession[]> {
  return db.manager.find(providerSessions, {
    where: { transactionId, status: In(PAYABLE) },
    order: { createdAt: 'ASC', id: 'ASC' },
  })
}

/** Changes a session that is in one of the statuses `from`; false where it is not, any more. */
export async function updateSessionIn(
  tx: Tx,
  sessionId: number,
  from: readonly SessionStatus[],
  changes: Partial<Omit<ProviderSession, 'id' | 'appId' | 'transactionId'>>,
): Promise<boolean> {
  const result = await tx.manager.update(
    providerSessions,
    { id: sessionId, status: In(from) },
    { ...changes, updatedAt: tx.now },
  )
  return result.affected === 1
}

export interface DueFilter {
  /** Only look-ups that are due at this instant; null for all sessions that may still be paid. */
  readonly dueAt: Date | null
  readonly appId: number | null
  readonly afterId: number
  readonly limit: number
}

/**
 * Sessions to look up, by id. A session is due at its time, and, unless its last look-up failed, once its transaction was completed in
 * another way. One statement: a row read after it was found due may have been claimed in between, and would be claimed again.
 */
export async function listDueSessions(db: ReadOnly, filter: DueFilter): Promise<ProviderSession[]> {
  const query = db.manager
    .createQueryBuilder(providerSessions, 's')
    .innerJoin('transactions', 't', 't.id = s.transaction_id')
    .where('s.status IN (:...payable) AND s.id > :afterId', { payable: PAYABLE, afterId: filter.afterId })
    .orderBy('s.id')
    .limit(filter.limit)
  if (filter.appId !== null) query.andWhere('s.app_id = :appId', { appId: filter.appId })
  if (filter.dueAt !== null) {
    query.andWhere(
      `(s.next_lookup_at <= :dueAt OR
        (t.status <> 'pending' AND s.failures = 0 AND (s.lookups = 0 OR s.updated_at <= :claimedBefore)))`,
      { dueAt: filter.dueAt, claimedBefore: addMs(filter.dueAt, -CLOSE_AGAIN_MS) },
    )
  }
  return query.getMany()
}

/** Takes the session's next look-up and says when the one after it is due; false where another worker took it. */
export async function claimLookup(tx: Tx, session: ProviderSession, nextLookupAt: Date): Promise<boolean> {
  const result = await tx.manager.update(
    providerSessions,
    { id: session.id, lookups: session.lookups, status: In(PAYABLE) },
    { lookups: session.lookups + 1, nextLookupAt, updatedAt: tx.now },
  )
  return result.affected === 1
}

/** Records how the look-up went that the caller has claimed; `nextLookupAt` stays where it is null. */
export async function recordLookup(
  tx: Tx,
  session: Pick<ProviderSession, 'id' | 'lookups'>,
  failures: number,
  nextLookupAt: Date | null,
): Promise<void> {
  await tx.manager.update(
    providerSessions,
    { id: session.id, lookups: session.lookups, status: In(PAYABLE) },
    { failures, ...(nextLookupAt ? { nextLookupAt } : {}), updatedAt: tx.now },
  )
}

/** Has the session looked up soon. */
export async function hastenLookup(tx: Tx, sessionId: number, nextLookupAt: Date): Promise<void> {
  await tx.manager.update(providerSessions, { id: sessionId, status: In(PAYABLE) }, { nextLookupAt, updatedAt: tx.now })
}

/** All that was opened at providers for a transaction, the first first. */
export async function listProviderSessionsOf(db: ReadOnly, transactionId: number): Promise<ProviderSession[]> {
  return db.manager.find(providerSessions, { where: { transactionId }, order: { id: 'ASC' } })
}

/** Whether the provider's event was taken before: a cheap answer to most repetitions, before a unique key decides over the rest. */
export async function wasToldBefore(db: ReadOnly, provider: string, eventId: string): Promise<boolean> {
  return db.manager.existsBy(providerEvents, { provider, eventId })
}

/** An app's account at a provider. */
export interface Account {
  readonly appId: number
  readonly provider: string
}

/** An account of which nothing is asked for a while, since its provider did not answer or refused its credentials. */
export interface ProviderPause {
  id: number
  appId: number
  provider: string
  /** In a row, each with a pause. */
  failures: number
  /** Of the last failure, for operators. */
  reason: string
  since: Date
  pausedUntil: Date
}

export const providerPauses = new EntitySchema<ProviderPause>({
  name: 'provider_pauses',
  columns: {
    id,
    appId: bigint('app_id'),
    provider: exact('provider', 32),
    failures: int('failures'),
    reason: words('reason', 191),
    since: instant('since'),
    pausedUntil: instant('paused_until'),
  },
})

/** Every account's last pause that no answer has ended, over or not. */
export async function listPauses(db: ReadOnly): Promise<ProviderPause[]> {
  return db.manager.find(providerPauses, { order: { appId: 'ASC', provider: 'ASC' } })
}

export async function findPause(db: ReadOnly, { appId, provider }: Account): Promise<ProviderPause | null> {
  return db.manager.findOneBy(providerPauses, { appId, provider })
}

/** Begins a pause, unless one is under way: of several failures at one time only the first makes the next pause longer. */
export async function beginPause(tx: Tx, pause: Omit<ProviderPause, 'id'>): Promise<void> {
  const { appId, provider, ...changes } = pause
  const isNew = await insertedNew('provider_pauses_account', tx.manager.insert(providerPauses, pause))
  if (!isNew) {
    await tx.manager.update(providerPauses, { appId, provider, pausedUntil: LessThanOrEqual(tx.now) }, changes)
  }
}

/** The account answered: its next failure is the first one. */
export async function endPause(tx: Tx, { appId, provider }: Account): Promise<void> {
  await tx.manager.delete(providerPauses, { appId, provider })
}

/** How many sessions failed to be looked up or closed this often in a row, and a transaction of one of them. */
export async function countFailing(
  db: ReadOnly,
  failures: number,
): Promise<{ count: number; transactionId: number | null }> {
  const failing = { status: In(PAYABLE), failures: MoreThanOrEqual(failures) }
  const [newest, count] = await db.manager.findAndCount(providerSessions, {
    where: failing,
    order: { id: 'DESC' },
    take: 1,
  })
  return { count, transactionId: newest[0]?.transactionId ?? null }
}
