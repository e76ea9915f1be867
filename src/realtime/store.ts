import { bigint, exact, id, text, int, realTime, words } from '#db/columns.ts'
import { shape, table, type Row } from '#db/table.ts'
import { insertedNew } from '#db/database-error.ts'
import type { Queries } from '#db/queries.ts'
import type { Tx } from '#commands/transaction.ts'
import type { RealTime } from '#shared/time.ts'

/** How it stands with the realtime node of one subscription. */
export const realtimeWrites = table('realtime_writes', {
  subscriptionId: bigint('subscription_id').primary(),
  appId: bigint('app_id'),
  state: exact('state', 16).as<'pending' | 'done' | 'failed'>(),
  wantedAt: realTime('wanted_at'),
  /** Grows with every wish for a write, at least as high as the subscription's revision: what a writer has covered is what it read here. */
  wantedRevision: bigint('wanted_revision'),
  /** Who is writing, until `leaseUntil` by the database's clock. */
  leaseToken: exact('lease_token', 64).nullable(),
  leaseUntil: realTime('lease_until').nullable(),
  /** Attempts that failed since the last that did not. */
  attempts: int('attempts'),
  lastError: words('last_error', 500).nullable(),
  writtenAt: realTime('written_at').nullable(),
})
export type RealtimeWrite = Row<typeof realtimeWrites>

const ERROR_CHARACTERS = 500
/** Where our own clock is ahead of the database's, no daemon waits for it. */
const WANTED_NOW = 'LEAST(?, UTC_TIMESTAMP(3))'

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
  const isNew = await insertedNew('PRIMARY', tx.insert(realtimeWrites, row, { wantedAt: WANTED_NOW }))
  if (!isNew) await raiseWish(tx, wish.subscriptionId, wish.revision)
}

async function raiseWish(tx: Tx, subscriptionId: number, revision: number): Promise<boolean> {
  const found = await tx.run(
    `UPDATE realtime_writes SET state = 'pending', wanted_at = ${WANTED_NOW}, wanted_revision = GREATEST(wanted_revision + 1, ?)
     WHERE subscription_id = ?`,
    [tx.now, revision, subscriptionId],
  )
  return found === 1
}

/** Takes the lease of a node for `leaseSeconds`; false while another writer holds it. Only a pending one, unless `anyState`. */
export async function claimWrite(
  tx: Tx,
  subscriptionId: number,
  leaseToken: string,
  leaseSeconds: number,
  anyState: boolean,
): Promise<boolean> {
  const found = await tx.run(
    `UPDATE realtime_writes SET lease_token = ?, lease_until = UTC_TIMESTAMP(3) + INTERVAL ? SECOND
     WHERE subscription_id = ? AND (lease_until IS NULL OR lease_until < UTC_TIMESTAMP(3))${anyState ? '' : " AND state = 'pending'"}`,
    [leaseToken, leaseSeconds, subscriptionId],
  )
  return found === 1
}

/** Keeps the lease for another round; false where it was lost. */
export async function extendLease(
  tx: Tx,
  subscriptionId: number,
  leaseToken: string,
  leaseSeconds: number,
): Promise<boolean> {
  const found = await tx.run(
    `UPDATE realtime_writes SET lease_until = UTC_TIMESTAMP(3) + INTERVAL ? SECOND
     WHERE subscription_id = ? AND lease_token = ?`,
    [leaseSeconds, subscriptionId, leaseToken],
  )
  return found === 1
}

/** Ends a write that covers all that is wanted and gives the lease back; false where more was wanted meanwhile, or the lease lost. */
export async function settleWrite(
  tx: Tx,
  subscriptionId: number,
  leaseToken: string,
  wantedRevision: number,
  error: string | null,
): Promise<boolean> {
  const [outcome, values] =
    error === null
      ? ["state = 'done', attempts = 0, last_error = NULL, written_at = ?", [tx.now]]
      : ["state = 'failed', attempts = attempts + 1, last_error = ?", [cut(error)]]
  const settled = await tx.run(
    `UPDATE realtime_writes SET ${outcome}, lease_token = NULL, lease_until = NULL
     WHERE subscription_id = ? AND lease_token = ? AND wanted_revision = ?`,
    [...values, subscriptionId, leaseToken, wantedRevision],
  )
  return settled === 1
}

/** Gives the lease back with the write still wanted. */
export async function yieldWrite(
  tx: Tx,
  subscriptionId: number,
  leaseToken: string,
  error: string | null,
): Promise<void> {
  const outcome = error === null ? '' : ', attempts = attempts + 1, last_error = ?'
  await tx.run(
    `UPDATE realtime_writes SET lease_token = NULL, lease_until = NULL${outcome}
     WHERE subscription_id = ? AND lease_token = ?`,
    [...(error === null ? [] : [cut(error)]), subscriptionId, leaseToken],
  )
}

/** Whether some writer holds the node's lease now. */
export async function isBeingWritten(db: Queries, subscriptionId: number): Promise<boolean> {
  const leased = 'WHERE subscription_id = ? AND lease_until > UTC_TIMESTAMP(3)'
  return (await db.one(realtimeWrites, leased, [subscriptionId])) !== null
}

export async function findRealtimeWrite(db: Queries, subscriptionId: number): Promise<RealtimeWrite | null> {
  return db.one(realtimeWrites, 'WHERE subscription_id = ?', [subscriptionId])
}

/** Ids of subscriptions whose node was not written: failed ones, and those that nobody is writing any more. Ascending, after `afterId`. */
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

/**
 * Writes that were wanted before `before`, by the database's clock, and that nobody is about: their writer died or ran out of time. The oldest of each app, then
 * the second oldest, so that many of one app do not hold back those of others.
 */
export async function listAbandoned(
  db: Queries,
  before: RealTime,
  limit: number,
): Promise<Pick<RealtimeWrite, 'subscriptionId' | 'appId'>[]> {
  return db.all(
    shape({ subscriptionId: bigint(), appId: bigint() }),
    `SELECT subscription_id AS subscriptionId, app_id AS appId FROM (
       SELECT subscription_id, app_id, wanted_at, ROW_NUMBER() OVER (PARTITION BY app_id ORDER BY wanted_at) AS turn
       FROM realtime_writes
       WHERE state = 'pending' AND wanted_at < ? AND (lease_until IS NULL OR lease_until < UTC_TIMESTAMP(3))
     ) abandoned ORDER BY turn, wanted_at LIMIT ?`,
    [before, limit],
  )
}

/** Apps with a node whose last write failed. */
export async function listAppsWithFailedWrites(db: Queries): Promise<number[]> {
  const rows = await db.all(
    shape({ appId: bigint() }),
    `SELECT DISTINCT app_id AS appId FROM realtime_writes WHERE state = 'failed' ORDER BY app_id`,
  )
  return rows.map(({ appId }) => appId)
}

/** How many nodes of the app, or of all apps, stand in each state. */
export async function countRealtimeWrites(
  db: Queries,
  appId: number | null,
): Promise<Record<RealtimeWrite['state'], number>> {
  const rows = await db.all(
    shape({ state: text().as<RealtimeWrite['state']>(), total: bigint() }),
    `SELECT state, COUNT(*) AS total FROM realtime_writes${appId === null ? '' : ' WHERE app_id = ?'} GROUP BY state`,
    appId === null ? [] : [appId],
  )
  const counts = { pending: 0, done: 0, failed: 0 }
  for (const { state, total } of rows) counts[state] = total
  return counts
}

function cut(error: string): string {
  return Array.from(error).slice(0, ERROR_CHARACTERS).join('')
}
