import { where } from '#db/conditions.ts'
import type { Queries } from '#db/queries.ts'
import type { ClockScope } from '#apps/clock-groups.ts'
import { endsInWindow, type Stage } from '#mails/reminders/stages.ts'
import { claimable } from '#mails/reminders/store.ts'
import type { AppTime, RealTime } from '#shared/time.ts'
import { beyond, inScopeOf, type Keyset } from '#subscriptions/ends/store.ts'
import { subscriptions, type Subscription } from '#subscriptions/store.ts'

/**
 * Subscriptions whose mail of `stage` is due at `now` (the time of the scope's apps), in the order of their ends. Left out are mails
 * that were sent, are being sent, or were refused for the customer's present address. `withFailed` adds those that failed and have
 * waited out their pause at `realNow`, by the database's clock.
 *
 * The query reads an index on the period end within the stage's window, so that its cost depends on what is due, not on what exists.
 * It ignores the stored status, which a sweep with a wrong clock can falsify.
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
    readonly after: Keyset | null
    readonly limit: number
  },
): Promise<Subscription[]> {
  const { after, upTo } = endsInWindow(due.stage, due.now)
  const inScope = inScopeOf(due.scope)
  const again = claimable('c.email', due.realNow)
  const { sql, params } = where(
    inScope.condition,
    due.exceptApps.size === 0 ? null : ['s.app_id NOT IN (?)', [...due.exceptApps]],
    beyond(due.after ?? { periodEnd: after, id: Number.MAX_SAFE_INTEGER }),
    ['s.current_period_end <= ?', upTo],
    ['s.reminders_stopped_at IS NULL AND a.disabled_at IS NULL'],
    ['s.period_start <= DATE_SUB(s.current_period_end, INTERVAL ? DAY)', due.stage],
    ['r.id IS NULL'],
  )
  // Without the hints, the optimizer may join the small tables by buffer and sort the whole window for each page.
  return db.all(
    subscriptions.as('s'),
    `FORCE INDEX (${inScope.index ?? 'subscriptions_end'})
     STRAIGHT_JOIN apps a FORCE INDEX (PRIMARY) ON a.id = s.app_id
     STRAIGHT_JOIN customers c FORCE INDEX (PRIMARY) ON c.id = s.customer_id
     LEFT JOIN reminders r FORCE INDEX (reminders_subscription_end_stage)
       ON r.subscription_id = s.id AND r.period_end = s.current_period_end AND r.stage = ?
         AND NOT (${again.sql} AND (r.status <> 'failed' OR ?))
     ${sql} ORDER BY s.current_period_end, s.id LIMIT ?`,
    [due.stage, ...again.params, due.withFailed, ...params, due.limit],
  )
}
