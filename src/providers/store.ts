import { EntitySchema, In } from 'typeorm'
import { bigint, exact, id, instant, int, nullable } from '#db/columns.ts'
import { insertedId } from '#db/transaction.ts'
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
    nextLookupAt: nullable(instant('next_lookup_at')),
    createdAt: instant('created_at'),
    updatedAt: instant('updated_at'),
  },
})

/** Those that may still be paid, as far as we know. */
const PAYABLE: SessionStatus[] = ['opening', 'open']
/** How soon closing a session is tried again whose transaction was completed in another way. */
const CLOSE_RETRY_MS = 2 * MINUTE_MS

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
 * Sessions to look up, by id. A session is due at its time, and once its transaction was completed in another way. One statement: a
 * row read after it was found due may have been claimed in between, and would be claimed again.
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
      `(s.next_lookup_at <= :dueAt OR (t.status <> 'pending' AND (s.lookups = 0 OR s.updated_at <= :retriedAt)))`,
      { dueAt: filter.dueAt, retriedAt: addMs(filter.dueAt, -CLOSE_RETRY_MS) },
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
