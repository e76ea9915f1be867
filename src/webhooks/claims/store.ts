import { bigint, bytes, flag, id, int, realTime, text } from '#db/columns.ts'
import { idAmong } from '#db/conditions.ts'
import { databasePresent, type Present } from '#db/database-now.ts'
import type { Param, Queries } from '#db/queries.ts'
import { shape, type Row } from '#db/table.ts'
import type { Tx } from '#commands/transaction.ts'
import { envelopeOf } from '#webhooks/envelope.ts'

/**
 * Every app with pending events, and when the first of them is due: one index lookup for each app. A GROUP BY over the events may read all
 * of them, including delivered ones, if the server estimates that they are few. Only MySQL reads the comment in the ORDER BY:
 * it needs the first columns of the index there, or it reads all pending events. With them, MariaDB does so in a prepared statement.
 */
export const FIRST_DUE = `SELECT a.id AS appId,
    (SELECT e.next_attempt_at FROM events e FORCE INDEX (events_app_due)
     WHERE e.app_id = a.id AND e.delivery_status = 'pending'
     ORDER BY /*!50708 e.app_id, e.delivery_status, */ e.next_attempt_at LIMIT 1) AS dueAt
  FROM apps a HAVING dueAt IS NOT NULL`

const DUE_APP = shape({ appId: bigint(), dueAt: realTime(), isDue: flag() })

/** Every app with pending events, and when the earliest of them is due. */
export async function listAppsWithPending(db: Queries, now: Present): Promise<Row<typeof DUE_APP>[]> {
  return db.all(DUE_APP, `SELECT appId, dueAt, dueAt <= ${now.sql} AS isDue FROM (${FIRST_DUE}) waiting`, now.params)
}

const DUE_EVENT = shape({ id: id(), appId: bigint() })
/** A due event that may be claimed. */
export type DueEvent = Row<typeof DUE_EVENT>

/** The condition for a claim: due, and without a running lease. */
export function claimable(now: Present): { sql: string; params: Param[] } {
  return {
    sql: `delivery_status = 'pending' AND next_attempt_at <= ${now.sql} AND (lease = 0 OR lease_until <= ${now.sql})`,
    params: [...now.params, ...now.params],
  }
}

/** The claimable events of each app that have been due longest, at most `limit` per app. */
export async function listDue(
  db: Queries,
  appIds: readonly number[],
  limit: number,
  now: Present,
): Promise<DueEvent[]> {
  const due = claimable(now)
  const parts = appIds.map(
    () => `(SELECT id, app_id AS appId FROM events FORCE INDEX (events_app_due)
            WHERE app_id = ? AND ${due.sql} ORDER BY next_attempt_at, id LIMIT ?)`,
  )
  return db.all(
    DUE_EVENT,
    parts.join(' UNION ALL '),
    appIds.flatMap((appId) => [appId, ...due.params, limit]),
  )
}

/** The lease of the claim `token`. It begins now, by the database's clock. */
export interface Lease {
  readonly token: number
  readonly ms: number
}

const CLAIMED = shape({
  id: id(),
  appId: bigint(),
  eventType: text(),
  body: bytes(),
  carriesId: flag(),
  /** The number of the attempt that may begin under the lease. */
  attempt: int(),
  retriesLeft: int(),
})

/** An event that only this process may send until its lease ends. `body` has the bytes to send. */
export type ClaimedEvent = Omit<Row<typeof CLAIMED>, 'carriesId'> & { readonly lease: number }

/**
 * Leases the events that are still due, by a conditional UPDATE, so that one of several daemons wins each row. Taking over an event whose
 * request had begun costs one retry; an event without retries is left to `failLost`. Each statement is a separate transaction: called again
 * with the same lease, it returns the same events.
 */
export async function claimDue(
  db: Queries,
  candidates: readonly DueEvent[],
  lease: Lease,
  now: Present,
): Promise<ClaimedEvent[]> {
  if (candidates.length === 0) return []
  const among = idAmong(candidates.map(({ id }) => id))
  const leased = leasing(now, lease)
  const due = claimable(now)
  // Assignments run from left to right, so the first one reads the old value of `begun`.
  await db.run(
    `UPDATE events SET retries_left = retries_left - begun, begun = 0, ${leased.sql}
     WHERE ${among.sql} AND ${due.sql} AND (begun = 0 OR retries_left > 0)`,
    [...leased.params, ...among.params, ...due.params],
  )
  return listClaimed(db, lease, candidates)
}

/** The assignments that begin a lease. */
function leasing(now: Present, { token, ms }: Lease): { sql: string; params: Param[] } {
  return {
    sql: `lease = ?, lease_until = ${now.sql} + INTERVAL ? MICROSECOND`,
    params: [token, ...now.params, ms * 1000],
  }
}

async function listClaimed(db: Queries, lease: Lease, candidates: readonly DueEvent[]): Promise<ClaimedEvent[]> {
  const among = idAmong(candidates.map(({ id }) => id))
  const rows = await db.all(
    CLAIMED,
    `SELECT id, app_id AS appId, event_type AS eventType, body, carries_id AS carriesId, attempts + 1 AS attempt, retries_left AS retriesLeft
     FROM events WHERE ${among.sql} AND lease = ?`,
    [...among.params, lease.token],
  )
  const claimed = rows.map(({ carriesId, ...row }) => ({
    ...row,
    body: envelopeOf({ id: row.id, body: row.body, carriesId }),
    lease: lease.token,
  }))
  const order = new Map(candidates.map(({ id }, index) => [id, index]))
  return claimed.sort((a, b) => (order.get(a.id) ?? 0) - (order.get(b.id) ?? 0))
}

/**
 * Counts the attempts of one lease whose requests begin now. Returns the ids of events whose lease is still held; another sender has taken
 * over the others. Each statement is a separate transaction: called again, it counts nothing twice.
 */
export async function countBegunAttempts(
  db: Queries,
  lease: number,
  eventIds: readonly number[],
): Promise<readonly number[]> {
  const among = idAmong(eventIds)
  const counted = await db.run(
    `UPDATE events SET attempts = attempts + 1, begun = 1 WHERE ${among.sql} AND lease = ? AND begun = 0`,
    [...among.params, lease],
  )
  if (counted === eventIds.length) return eventIds
  const held = await db.all(
    shape({ id: id() }),
    `SELECT id FROM events WHERE ${among.sql} AND lease = ? AND begun = 1`,
    [...among.params, lease],
  )
  return held.map((event) => event.id)
}

/** Leases an event that has had no attempt, and counts its first attempt, which begins at once. */
export async function leaseNew(tx: Tx, eventId: number, lease: Lease): Promise<void> {
  const leased = leasing(databasePresent(tx.ctx), lease)
  await tx.run(
    `UPDATE events SET attempts = 1, begun = 1, ${leased.sql} WHERE id = ? AND delivery_status = 'pending' AND lease = 0`,
    [...leased.params, eventId],
  )
}
