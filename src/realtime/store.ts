import { AT_ONCE, bigint, dueTime, exact, id, int, realTime, words } from '#db/columns.ts'
import { shape, table, type Row } from '#db/table.ts'
import { insertedNew } from '#db/database-error.ts'
import type { Param, Queries } from '#db/queries.ts'
import type { Tx } from '#commands/transaction.ts'
import type { RealTime } from '#shared/time.ts'
import { truncate } from '#shared/truncate.ts'

/** The pending or last write of a subscription's realtime node. */
export const realtimeWrites = table('realtime_writes', {
  subscriptionId: bigint('subscription_id').primary(),
  appId: bigint('app_id'),
  state: exact('state', 16).as<'pending' | 'done' | 'failed'>(),
  requestedAt: dueTime('wanted_at'),
  /** Grows with every request, and is at least the subscription's revision: a writer covers the requests up to the value it read. */
  requestedRevision: bigint('wanted_revision'),
  /** The present writer, until `leaseUntil` by the database's clock. */
  leaseToken: exact('lease_token', 64).nullable(),
  leaseUntil: realTime('lease_until').nullable(),
  /** Failed attempts since the last success. */
  attempts: int('attempts'),
  lastError: words('last_error', 500).nullable(),
  writtenAt: realTime('written_at').nullable(),
})
export type RealtimeWrite = Row<typeof realtimeWrites>

const ERROR_CHARACTERS = 500

/** Requests a write of the node, in the transaction of the change that it shows. `writeNode` follows after the commit. */
export async function queueRealtimeWrite(
  tx: Tx,
  request: { readonly appId: number; readonly subscriptionId: number; readonly revision: number },
): Promise<void> {
  const { appId, subscriptionId, revision } = request
  if (await requestAgain(tx, subscriptionId, revision)) return
  const row: RealtimeWrite = {
    subscriptionId,
    appId,
    state: 'pending',
    requestedAt: tx.now,
    requestedRevision: revision,
    leaseToken: null,
    leaseUntil: null,
    attempts: 0,
    lastError: null,
    writtenAt: null,
  }
  const isNew = await insertedNew('PRIMARY', tx.insert(realtimeWrites, row))
  if (!isNew) await requestAgain(tx, subscriptionId, revision)
}

async function requestAgain(tx: Tx, subscriptionId: number, revision: number): Promise<boolean> {
  const found = await tx.run(
    `UPDATE realtime_writes SET state = 'pending', wanted_at = ${AT_ONCE},
       wanted_revision = GREATEST(wanted_revision + 1, ?)
     WHERE subscription_id = ?`,
    [tx.now, revision, subscriptionId],
  )
  return found === 1
}

/** Longer than any write, so that a lease expires only when its writer died. */
const LEASE_SECONDS = 20

/** Claims the lease of a node; false while another writer has it, or if its write is not in `state`. */
export async function claimWrite(
  tx: Tx,
  subscriptionId: number,
  leaseToken: string,
  state: 'pending' | 'any',
): Promise<boolean> {
  const andPending = state === 'pending' ? "AND state = 'pending'" : ''
  const found = await tx.run(
    `UPDATE realtime_writes SET lease_token = ?, lease_until = UTC_TIMESTAMP(3) + INTERVAL ? SECOND
     WHERE subscription_id = ? AND (lease_until IS NULL OR lease_until < UTC_TIMESTAMP(3) OR lease_token = ?) ${andPending}`,
    [leaseToken, LEASE_SECONDS, subscriptionId, leaseToken],
  )
  return found === 1
}

/** Extends the lease; false if it was lost. */
export async function extendLease(tx: Tx, subscriptionId: number, leaseToken: string): Promise<boolean> {
  const found = await tx.run(
    `UPDATE realtime_writes SET lease_until = UTC_TIMESTAMP(3) + INTERVAL ? SECOND
     WHERE subscription_id = ? AND lease_token = ?`,
    [LEASE_SECONDS, subscriptionId, leaseToken],
  )
  return found === 1
}

/** Records a write that covers all requests, and releases the lease; false if more was requested in the meantime, or the lease was lost. */
export async function finishWrite(
  tx: Tx,
  subscriptionId: number,
  leaseToken: string,
  revision: number,
  error: string | null,
): Promise<boolean> {
  const [outcome, values] =
    error === null
      ? ["state = 'done', attempts = 0, last_error = NULL, written_at = ?", [tx.now]]
      : ["state = 'failed', attempts = attempts + 1, last_error = ?", [truncate(error, ERROR_CHARACTERS)]]
  const finished = await tx.run(
    `UPDATE realtime_writes SET ${outcome}, lease_token = NULL, lease_until = NULL
     WHERE subscription_id = ? AND lease_token = ? AND wanted_revision = ?`,
    [...values, subscriptionId, leaseToken, revision],
  )
  return finished === 1
}

/** Releases the lease of a write that is still pending; `error` null if the attempt succeeded. */
export async function releaseWrite(
  tx: Tx,
  subscriptionId: number,
  leaseToken: string,
  error: string | null,
): Promise<void> {
  await tx.run(
    `UPDATE realtime_writes SET lease_token = NULL, lease_until = NULL, attempts = attempts + ?, last_error = COALESCE(?, last_error)
     WHERE subscription_id = ? AND lease_token = ?`,
    [error === null ? 0 : 1, error && truncate(error, ERROR_CHARACTERS), subscriptionId, leaseToken],
  )
}

/** Whether a writer holds the node's lease now. */
export async function isBeingWritten(db: Queries, subscriptionId: number): Promise<boolean> {
  const leased = 'WHERE subscription_id = ? AND lease_until > UTC_TIMESTAMP(3)'
  return (await db.one(realtimeWrites, leased, [subscriptionId])) !== null
}

export async function findRealtimeWrite(db: Queries, subscriptionId: number): Promise<RealtimeWrite | null> {
  return db.one(realtimeWrites, 'WHERE subscription_id = ?', [subscriptionId])
}

/** Subscriptions whose write failed, or is pending without a writer: ascending ids after `afterId`. */
export async function listUnwritten(db: Queries, appId: number, afterId: number, limit: number): Promise<number[]> {
  const rows = await db.all(
    shape({ id: id() }),
    `SELECT subscription_id AS id FROM realtime_writes
       WHERE app_id = ? AND subscription_id > ? AND (state = 'failed'
         OR (state = 'pending' AND (lease_until IS NULL OR lease_until < UTC_TIMESTAMP(3))))
       ORDER BY subscription_id LIMIT ?`,
    [appId, afterId, limit],
  )
  return rows.map((row) => row.id)
}

const ABANDONED = `state = 'pending' AND wanted_at < ? AND (lease_until IS NULL OR lease_until < UTC_TIMESTAMP(3))`

/**
 * Pending writes without a writer that were requested before `before`, by the database's clock: their writer died or ran out of time. Each
 * app gets the same share, so that many writes of one app do not delay the writes of others. Lists one write of each app in rotation, each
 * app's oldest first.
 */
export async function listAbandoned(
  db: Queries,
  before: RealTime,
  limit: number,
): Promise<Pick<RealtimeWrite, 'subscriptionId' | 'appId'>[]> {
  const appIds = await listAppsWith(db, `(${WRITE_OF_APP} ${ABANDONED} LIMIT 1) = 1`, before)
  if (appIds.length === 0) return []
  const share = Math.ceil(limit / appIds.length)
  const parts = appIds.map(
    () => `(SELECT subscription_id AS subscriptionId, app_id AS appId FROM realtime_writes FORCE INDEX (realtime_writes_due)
       WHERE app_id = ? AND ${ABANDONED} ORDER BY wanted_at LIMIT ?)`,
  )
  const rows = await db.all(
    shape({ subscriptionId: bigint(), appId: bigint() }),
    parts.join(' UNION ALL '),
    appIds.flatMap((appId) => [appId, before, share]),
  )
  const byApp = [...Map.groupBy(rows, ({ appId }) => appId).values()]
  return Array.from({ length: share }, (_, rank) => byApp.map((ofApp) => ofApp[rank]))
    .flat()
    .filter((write) => write !== undefined)
    .slice(0, limit)
}

/** How many writes of all apps have failed, counted up to `limit`. */
export async function countFailedWrites(db: Queries, limit: number): Promise<number> {
  return countWrites(db, `state = 'failed'`, [limit])
}

/** How many `listAbandoned` lists in all, counted up to `limit`. */
export async function countAbandoned(db: Queries, before: RealTime, limit: number): Promise<number> {
  return countWrites(db, ABANDONED, [before, limit])
}

async function countWrites(db: Queries, condition: string, params: readonly Param[]): Promise<number> {
  const writes = `SELECT 1 FROM realtime_writes FORCE INDEX (realtime_writes_state) WHERE ${condition} LIMIT ?`
  const sql = `SELECT COUNT(*) AS total FROM (${writes}) writes`
  return (await db.single(shape({ total: bigint() }), sql, params)).total
}

const WRITE_OF_APP = 'SELECT 1 FROM realtime_writes w FORCE INDEX (realtime_writes_due) WHERE w.app_id = a.id AND'

/** Apps with a node whose last write failed, or was abandoned before `before`: two index lookups for each app. */
export async function listAppsWithUnwritten(db: Queries, before: RealTime): Promise<number[]> {
  return listAppsWith(
    db,
    `(${WRITE_OF_APP} state = 'failed' LIMIT 1) = 1 OR (${WRITE_OF_APP} ${ABANDONED} LIMIT 1) = 1`,
    before,
  )
}

async function listAppsWith(db: Queries, condition: string, before: RealTime): Promise<number[]> {
  const rows = await db.all(shape({ id: id() }), `SELECT a.id FROM apps a WHERE ${condition} ORDER BY a.id`, [before])
  return rows.map((row) => row.id)
}
