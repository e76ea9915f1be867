import { bigint, id, int, realTime, text, words } from '#db/columns.ts'
import { databasePresent } from '#db/database-now.ts'
import type { Queries } from '#db/queries.ts'
import { shape, table, type Row } from '#db/table.ts'
import type { Tx } from '#commands/transaction.ts'
import type { RealTime } from '#shared/time.ts'

/** One delivery attempt. `httpStatus` is null without an answer; `error` is null if the app acknowledged. */
export const deliveryAttempts = table('delivery_attempts', {
  id: id(),
  eventId: bigint('event_id'),
  attempt: int('attempt'),
  startedAt: realTime('started_at'),
  durationMs: int('duration_ms'),
  httpStatus: int('http_status').nullable(),
  error: words('error', 500).nullable(),
  /** The beginning of the answer's body, without control characters. */
  responseHead: text('response_head').nullable(),
})
export type DeliveryAttempt = Row<typeof deliveryAttempts>

export async function listAttempts(db: Queries, eventId: number): Promise<DeliveryAttempt[]> {
  return db.all(deliveryAttempts, 'WHERE event_id = ? ORDER BY id', [eventId])
}

export type NewAttempt = Omit<DeliveryAttempt, 'id'>

export async function insertAttempts(tx: Tx, attempts: readonly NewAttempt[]): Promise<void> {
  await tx.insertAll(deliveryAttempts, attempts)
}

/** Whether an attempt is recorded; waits for a transaction that is recording it. */
export async function hasAttempt(tx: Tx, { eventId, attempt, startedAt }: NewAttempt): Promise<boolean> {
  const condition = 'WHERE event_id = ? AND attempt = ? AND started_at = ? FOR UPDATE'
  return (await tx.all(deliveryAttempts, condition, [eventId, attempt, startedAt])).length > 0
}

/**
 * Removes attempts that began before `before`, among the `limit` oldest; returns how many. A machine whose clock was ahead dates attempts in
 * the future, which hold up no others.
 */
export async function deleteOldAttempts(tx: Tx, before: RealTime, limit: number): Promise<number> {
  const now = databasePresent(tx.ctx)
  const oldest = await tx.all(
    shape({ id: id(), startedAt: realTime() }),
    `SELECT id, started_at AS startedAt FROM delivery_attempts WHERE started_at <= ${now.sql} ORDER BY id LIMIT ?`,
    [...now.params, limit],
  )
  const ids = oldest.filter(({ startedAt }) => startedAt < before).map((attempt) => attempt.id)
  if (ids.length > 0) await tx.run('DELETE FROM delivery_attempts WHERE id IN (?)', [ids])
  return ids.length
}
