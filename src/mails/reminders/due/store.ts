import { following, where, type Position } from '#db/conditions.ts'
import type { Queries } from '#db/queries.ts'
import type { ClockScope } from '#apps/clock-groups.ts'
import { endsInWindow, type Stage } from '#mails/reminders/stages.ts'
import { claimableSql } from '#mails/reminders/store.ts'
import type { AppTime, RealTime } from '#shared/time.ts'
import { BY_END, inScopeOf } from '#subscriptions/ends/store.ts'
import { subscriptions, type Subscription } from '#subscriptions/store.ts'

/**
 * Subscriptions whose mail of `stage` is due at `now` (the time of the scope's apps), in the order of their ends. Left out are mails
 * that were sent, are being sent, or were refused for the customer's present address. `withFailed` adds those that failed and have
 * waited out their pause at `realNow`, by the database's clock.
 *
 * The query reads an index on the period end within the stage's window, so that its cost depends on what is due, not on what exists.
 * It drops what was sent before it reads the subscription's row, because most of a window was sent by earlier sweeps. It ignores the
 * stored status, which a sweep with a wrong clock can falsify.
 */
export async function listDueSubscriptions(
  db: Queries,
  due: {
    readonly scope: ClockScope
    readonly stage: Stage
    readonly now: AppTime
    readonly realNow: RealTime
    /** Apps to leave out. */
    readonly exceptApps: ReadonlySet<number>
    readonly withFailed: boolean
    readonly after: Position | null
    readonly limit: number
  },
): Promise<Subscription[]> {
  const { after, upTo } = endsInWindow(due.stage, due.now)
  const inScope = inScopeOf(due.scope)
  const again = claimableSql('c.email', due.realNow)
  const { sql, params } = where(
    inScope.condition,
    following(due.after ?? { at: after, id: Number.MAX_SAFE_INTEGER }, BY_END, 'asc'),
    ['s.current_period_end <= ?', upTo],
    [`(r.id IS NULL OR r.status IN ('failed', 'refused'))`],
    [`(r.id IS NULL OR (${again.sql} AND (r.status <> 'failed' OR ?)))`, ...again.params, due.withFailed],
    due.exceptApps.size === 0 ? null : ['whole.app_id NOT IN (?)', [...due.exceptApps]],
    ['whole.customer_id IS NOT NULL AND whole.reminders_stopped_at IS NULL AND a.disabled_at IS NULL'],
    ['whole.period_start <= DATE_SUB(s.current_period_end, INTERVAL ? DAY)', due.stage],
  )
  // `s` is the entry of the index, `whole` the row. Without the hints, the optimizer may join the small tables by buffer and sort the
  // whole window for each page.
  return db.all(
    subscriptions.as('whole', 'subscriptions s'),
    `FORCE INDEX (${inScope.index ?? 'subscriptions_end'})
     LEFT JOIN reminders r FORCE INDEX (reminders_subscription_end_stage)
       ON r.subscription_id = s.id AND r.period_end = s.current_period_end AND r.stage = ?
     STRAIGHT_JOIN subscriptions whole FORCE INDEX (PRIMARY) ON whole.id = s.id
     STRAIGHT_JOIN apps a FORCE INDEX (PRIMARY) ON a.id = whole.app_id
     LEFT JOIN customers c FORCE INDEX (PRIMARY) ON r.status = 'refused' AND c.id = whole.customer_id
     ${sql} ORDER BY s.current_period_end, s.id LIMIT ?`,
    [due.stage, ...params, due.limit],
  )
}
