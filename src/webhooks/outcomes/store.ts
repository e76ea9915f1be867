import { bigint, id } from '#db/columns.ts'
import { idAmong } from '#db/conditions.ts'
import { databasePresent } from '#db/database-now.ts'
import type { Param, Queries } from '#db/queries.ts'
import { shape } from '#db/table.ts'
import type { Tx } from '#commands/transaction.ts'
import type { RealTime } from '#shared/time.ts'
import { claimable } from '#webhooks/claims/store.ts'
import { REPORTS_CHANGE } from '#webhooks/store.ts'

/** Ends a lease; another attempt may follow. */
const NO_LEASE = 'lease = 0, begun = 0'
/** Ends a lease; no attempt follows. */
const NO_MORE = 'lease = 0, begun = 0, lease_until = NULL'

/** Ends the lease of those events that are still held under it, with these assignments; returns how many. */
async function endLeases(
  tx: Tx,
  lease: number,
  eventIds: readonly number[],
  assignments: string,
  values: readonly Param[] = [],
): Promise<number> {
  const among = idAmong(eventIds)
  return tx.run(`UPDATE events SET ${assignments} WHERE ${among.sql} AND lease = ?`, [
    ...values,
    ...among.params,
    lease,
  ])
}

/** Ends leases after success; returns how many were still held. */
export async function markDelivered(tx: Tx, lease: number, eventIds: readonly number[]): Promise<number> {
  const assignments = `delivery_status = 'delivered', delivered_at = ?, last_error = NULL, next_attempt_at = NULL, ${NO_MORE}`
  return endLeases(tx, lease, eventIds, assignments, [tx.now])
}

/** Ends leases after failed attempts: due again at `retryAt`, with one retry less. Returns how many were still held. */
export async function markRetried(
  tx: Tx,
  lease: number,
  eventIds: readonly number[],
  retryAt: RealTime,
  error: string,
): Promise<number> {
  const assignments = `retries_left = retries_left - 1, next_attempt_at = ?, last_error = ?, ${NO_LEASE}`
  return endLeases(tx, lease, eventIds, assignments, [retryAt, error])
}

/** Ends leases after a failed last attempt. Returns how many were still held. */
export async function markFailed(tx: Tx, lease: number, eventIds: readonly number[], error: string): Promise<number> {
  const assignments = `delivery_status = 'failed', next_attempt_at = NULL, last_error = ?, ${NO_MORE}`
  return endLeases(tx, lease, eventIds, assignments, [error])
}

/** Fails the events whose last attempt was interrupted: `claimDue` never claims them. Returns how many. */
export async function failLost(tx: Tx, eventIds: readonly number[]): Promise<number> {
  const due = claimable(databasePresent(tx.ctx))
  return tx.run(
    `UPDATE events SET delivery_status = 'failed', last_error = 'interrupted', next_attempt_at = NULL, ${NO_MORE}
     WHERE id IN (?) AND ${due.sql} AND begun = 1 AND retries_left = 0`,
    [eventIds, ...due.params],
  )
}

/** Ends leases of events whose requests did not begin. Their due time stays. */
export async function releaseLeases(tx: Tx, lease: number, eventIds: readonly number[]): Promise<void> {
  await endLeases(tx, lease, eventIds, NO_LEASE)
}

/** Ends leases of events that could not be sent for a reason on our side. They are due again at `nextAttemptAt`. */
export async function postpone(
  tx: Tx,
  lease: number,
  eventIds: readonly number[],
  nextAttemptAt: RealTime,
  error: string,
): Promise<number> {
  const assignments = `next_attempt_at = ?, last_error = ?, ${NO_LEASE}`
  return endLeases(tx, lease, eventIds, assignments, [nextAttemptAt, error])
}

/** Ends leases of events whose app no longer has a webhook. They are kept and not delivered. */
export async function markNotConfigured(tx: Tx, lease: number, eventIds: readonly number[]): Promise<number> {
  const assignments = `delivery_status = 'not_configured', next_attempt_at = NULL, ${NO_MORE}`
  return endLeases(tx, lease, eventIds, assignments)
}

/**
 * Makes events due again, with all retries. Keeps the time of an earlier delivery. Skips events that are leased at `now`, by the database's
 * clock. With `failed`, also skips events that are no longer failed: another operator may have been faster, or a retry has been
 * delivered since. Returns how many changed.
 */
export async function requeue(
  tx: Tx,
  eventIds: readonly number[],
  status: 'any' | 'failed',
  retries: number,
  now: RealTime,
): Promise<number> {
  return tx.run(
    `UPDATE events SET delivery_status = 'pending', retries_left = ?, next_attempt_at = ?, ${NO_LEASE}
     WHERE id IN (?) AND (lease = 0 OR lease_until <= ?)${status === 'failed' ? " AND delivery_status = 'failed'" : ''}`,
    [retries, now, eventIds, now],
  )
}

/** An app's failed events about changes. */
const FAILED = `FROM events e FORCE INDEX (events_app_due) WHERE e.app_id = ? AND e.delivery_status = 'failed' AND ${REPORTS_CHANGE}`

export async function countFailedEvents(db: Queries, appId: number): Promise<number> {
  return (await db.single(shape({ failed: bigint() }), `SELECT COUNT(*) AS failed ${FAILED}`, [appId])).failed
}

/** The ids after `afterId` of an app's failed events, ascending. `next_attempt_at` is NULL for all, so the index returns them by id. */
export async function listFailedIds(db: Queries, appId: number, afterId: number, limit: number): Promise<number[]> {
  const rows = await db.all(
    shape({ id: id() }),
    `SELECT e.id ${FAILED} AND e.next_attempt_at IS NULL AND e.id > ? ORDER BY e.id LIMIT ?`,
    [appId, afterId, limit],
  )
  return rows.map(({ id }) => id)
}
