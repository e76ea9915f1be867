import { appTime, flag, id } from '#db/columns.ts'
import { following, where, type Position } from '#db/conditions.ts'
import { shape } from '#db/table.ts'
import type { Queries } from '#db/queries.ts'
import type { Tx } from '#commands/transaction.ts'
import type { ClockScope } from '#apps/clock-groups.ts'
import { BY_END, inScopeOf } from '#subscriptions/ends/store.ts'
import type { AppTime } from '#shared/time.ts'

/** `isAnnounced`: the app opted in to `subscription.expired`. */
export interface RunOut extends Position {
  readonly isAnnounced: boolean
}

/** Subscriptions that are stored as active and have ended by `now`, in the order of their ends, from `after` on. */
export async function listRunOut(
  db: Queries,
  scope: ClockScope,
  now: AppTime,
  after: Position | null,
  limit: number,
): Promise<RunOut[]> {
  const inScope = inScopeOf(scope)
  const { sql, params } = where(
    [`s.status = 'active' AND s.current_period_end <= ?`, now],
    inScope.condition,
    following(after, BY_END, 'asc'),
  )
  return db.all(
    shape({ id: id(), at: appTime(), isAnnounced: flag() }),
    `SELECT STRAIGHT_JOIN s.id, s.current_period_end AS at,
       COALESCE(a.more_events LIKE '%"subscription.expired"%', 0) AS isAnnounced
     FROM subscriptions s FORCE INDEX (${inScope.index ?? 'subscriptions_status_end'})
     JOIN apps a FORCE INDEX (PRIMARY) ON a.id = s.app_id
     ${sql} ORDER BY s.current_period_end, s.id LIMIT ?`,
    [...params, limit],
  )
}

/** Stores that periods have ended, except those renewed in the meantime; returns how many. */
export async function storeExpired(tx: Tx, subscriptionIds: readonly number[], now: AppTime): Promise<number> {
  return tx.run(
    `UPDATE subscriptions SET status = 'expired' WHERE id IN (?) AND status = 'active' AND current_period_end <= ?`,
    [subscriptionIds, now],
  )
}

/** Stops the mails of one subscription, or resumes them if `stoppedAt` is null; returns whether that changed anything. */
export async function setRemindersStopped(tx: Tx, subscriptionId: number, stoppedAt: AppTime | null): Promise<boolean> {
  return (
    (await tx.run(
      `UPDATE subscriptions SET reminders_stopped_at = ?
     WHERE id = ? AND reminders_stopped_at IS ${stoppedAt === null ? 'NOT NULL' : 'NULL'}`,
      [stoppedAt, subscriptionId],
    )) === 1
  )
}
