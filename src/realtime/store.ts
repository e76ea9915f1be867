import { EntitySchema } from 'typeorm'
import { bigint, exact, instant, int, nullable, words } from '#db/columns.ts'
import { insertedNew } from '#db/transaction.ts'
import type { ReadOnly, Tx } from '#db/transaction.ts'

/** How it stands with the realtime node of one subscription. */
export interface RealtimeWrite {
  subscriptionId: number
  appId: number
  state: 'pending' | 'done' | 'failed'
  wantedAt: Date
  /** Grows with every wish for a write, at least as high as the subscription's revision: what a writer has covered is what it read here. */
  wantedRevision: number
  /** Who is writing, until `leaseUntil` by the database's clock. */
  leaseToken: string | null
  leaseUntil: Date | null
  /** Attempts that failed since the last that did not. */
  attempts: number
  lastError: string | null
  writtenAt: Date | null
}

export const realtimeWrites = new EntitySchema<RealtimeWrite>({
  name: 'realtime_writes',
  columns: {
    subscriptionId: { ...bigint('subscription_id'), primary: true },
    appId: bigint('app_id'),
    state: exact('state', 16),
    wantedAt: instant('wanted_at'),
    wantedRevision: bigint('wanted_revision'),
    leaseToken: nullable(exact('lease_token', 64)),
    leaseUntil: nullable(instant('lease_until')),
    attempts: int('attempts'),
    lastError: nullable(words('last_error', 500)),
    writtenAt: nullable(instant('written_at')),
  },
})

const ERROR_CHARACTERS = 500

/** Wants the node of a subscription written; the row is there afterwards. */
export async function wantWrite(
  tx: Tx,
  wish: { readonly appId: number; readonly subscriptionId: number; readonly revision: number },
): Promise<void> {
  if (await raiseWish(tx, wish.subscriptionId, wish.revision)) return
  const row: RealtimeWrite = {
    subscriptionId: wish.subscriptionId,
    appId: wish.appId,
    state: 'pending',
    wantedAt: tx.now,
    wantedRevision: wish.revision,
    leaseToken: null,
    leaseUntil: null,
    attempts: 0,
    lastError: null,
    writtenAt: null,
  }
  const isNew = await insertedNew('PRIMARY', tx.manager.insert(realtimeWrites, row))
  if (!isNew) await raiseWish(tx, wish.subscriptionId, wish.revision)
}

async function raiseWish(tx: Tx, subscriptionId: number, revision: number): Promise<boolean> {
  const result = await execute(
    tx,
    `UPDATE realtime_writes SET state = 'pending', wanted_at = ?, wanted_revision = GREATEST(wanted_revision + 1, ?)
     WHERE subscription_id = ?`,
    [tx.now, revision, subscriptionId],
  )
  return result === 1
}

/** Takes the lease of a node for `leaseSeconds`; false while another writer holds it. Only a pending one, unless `anyState`. */
export async function claimWrite(
  tx: Tx,
  subscriptionId: number,
  leaseToken: string,
  leaseSeconds: number,
  anyState: boolean,
): Promise<boolean> {
  const result = await execute(
    tx,
    `UPDATE realtime_writes SET lease_token = ?, lease_until = UTC_TIMESTAMP(3) + INTERVAL ? SECOND
     WHERE subscription_id = ? AND (lease_until IS NULL OR lease_until < UTC_TIMESTAMP(3))${anyState ? '' : " AND state = 'pending'"}`,
    [leaseToken, leaseSeconds, subscriptionId],
  )
  return result === 1
}

/** Keeps the lease for another round; false where it was lost. */
export async function extendLease(
  tx: Tx,
  subscriptionId: number,
  leaseToken: string,
  leaseSeconds: number,
): Promise<boolean> {
  const result = await execute(
    tx,
    `UPDATE realtime_writes SET lease_until = UTC_TIMESTAMP(3) + INTERVAL ? SECOND
     WHERE subscription_id = ? AND lease_token = ?`,
    [leaseSeconds, subscriptionId, leaseToken],
  )
  return result === 1
}

/** Ends a write that covers all that is wanted and gives the lease back; false where more was wanted meanwhile, or the lease lost. */
export async function settleWrite(
  tx: Tx,
  subscriptionId: number,
  leaseToken: string,
  wantedRevision: number,
  error: string | null,
): Promise<boolean> {
  const outcome =
    error === null
      ? { state: 'done' as const, attempts: 0, lastError: null, writtenAt: tx.now }
      : { state: 'failed' as const, attempts: () => 'attempts + 1', lastError: cut(error) }
  const result = await tx.manager.update(
    realtimeWrites,
    { subscriptionId, leaseToken, wantedRevision },
    { ...outcome, leaseToken: null, leaseUntil: null },
  )
  return result.affected === 1
}

/** Gives the lease back with the write still wanted. */
export async function yieldWrite(
  tx: Tx,
  subscriptionId: number,
  leaseToken: string,
  error: string | null,
): Promise<void> {
  await tx.manager.update(
    realtimeWrites,
    { subscriptionId, leaseToken },
    {
      leaseToken: null,
      leaseUntil: null,
      ...(error === null ? {} : { attempts: () => 'attempts + 1', lastError: cut(error) }),
    },
  )
}

/** Whether some writer holds the node's lease now. */
export async function isBeingWritten(db: ReadOnly, subscriptionId: number): Promise<boolean> {
  const rows = await db.manager.query<unknown[]>(
    'SELECT 1 FROM realtime_writes WHERE subscription_id = ? AND lease_until > UTC_TIMESTAMP(3)',
    [subscriptionId],
  )
  return rows.length > 0
}

export async function findRealtimeWrite(db: ReadOnly, subscriptionId: number): Promise<RealtimeWrite | null> {
  return db.manager.findOneBy(realtimeWrites, { subscriptionId })
}

/** Ids of subscriptions whose node was not written: failed ones, and those that nobody is writing any more. Ascending, after `afterId`. */
export async function listUnwritten(db: ReadOnly, appId: number, afterId: number, limit: number): Promise<number[]> {
  const rows = await db.manager.query<{ id: string | number }[]>(
    `SELECT subscription_id AS id FROM realtime_writes
       WHERE app_id = ? AND subscription_id > ? AND (state = 'failed'
         OR (state = 'pending' AND (lease_until IS NULL OR lease_until < UTC_TIMESTAMP(3))))
       ORDER BY subscription_id LIMIT ?`,
    [appId, afterId, limit],
  )
  return rows.map(({ id }) => Number(id))
}

/**
 * Writes that were wanted before `before` and that nobody is about: their writer died or ran out of time. The oldest of each app, then
 * the second oldest, so that many of one app do not hold back those of others.
 */
export async function listAbandoned(
  db: ReadOnly,
  before: Date,
  limit: number,
): Promise<Pick<RealtimeWrite, 'subscriptionId' | 'appId'>[]> {
  const rows = await db.manager.query<{ subscription_id: string | number; app_id: string | number }[]>(
    `SELECT subscription_id, app_id FROM (
       SELECT subscription_id, app_id, wanted_at, ROW_NUMBER() OVER (PARTITION BY app_id ORDER BY wanted_at) AS turn
       FROM realtime_writes
       WHERE state = 'pending' AND wanted_at < ? AND (lease_until IS NULL OR lease_until < UTC_TIMESTAMP(3))
     ) abandoned ORDER BY turn, wanted_at LIMIT ?`,
    [before, limit],
  )
  return rows.map((row) => ({ subscriptionId: Number(row.subscription_id), appId: Number(row.app_id) }))
}

/** How many nodes of the app, or of all apps, stand in each state. */
export async function countRealtimeWrites(
  db: ReadOnly,
  appId: number | null,
): Promise<Record<RealtimeWrite['state'], number>> {
  const rows = await db.manager.query<{ state: RealtimeWrite['state']; total: string | number }[]>(
    `SELECT state, COUNT(*) AS total FROM realtime_writes${appId === null ? '' : ' WHERE app_id = ?'} GROUP BY state`,
    appId === null ? [] : [appId],
  )
  const counts = { pending: 0, done: 0, failed: 0 }
  for (const { state, total } of rows) counts[state] = Number(total)
  return counts
}

async function execute(tx: Tx, sql: string, parameters: unknown[]): Promise<number> {
  const result = await tx.manager.query<{ affectedRows: number }>(sql, parameters)
  return result.affectedRows
}

function cut(error: string): string {
  return Array.from(error).slice(0, ERROR_CHARACTERS).join('')
}
