import type { ClockScope } from '#apps/clock-groups.ts'
import { where, type Condition } from '#db/conditions.ts'
import type { Queries } from '#db/queries.ts'
import type { AppTime } from '#shared/time.ts'
import { subscriptions, type Subscription } from '#subscriptions/store.ts'

/** Where a subscription stands in the order of the ends of periods. */
export interface Keyset {
  readonly periodEnd: AppTime
  readonly id: number
}

/** Where a subscription stands among those in the order of their ends; null for a lifetime, which has none. */
export function endOf({ id, currentPeriodEnd: periodEnd }: Subscription): Keyset | null {
  return periodEnd && { periodEnd, id }
}

/** Subscriptions of a scope, as rows `s` and `a`, and the index that orders them by period end, if there is one of their own. */
export function inScopeOf(scope: ClockScope): { readonly index: string | null; readonly condition: Condition } {
  return scope === 'apps in real time'
    ? { index: null, condition: ['a.clock_offset_ms = 0'] }
    : { index: 'subscriptions_app_end', condition: ['s.app_id = ?', scope.appId] }
}

/** Subscriptions `s` that follow in the order of their ends. The first bound is for the index, to skip what came before. */
export function beyond({ periodEnd, id }: Keyset): Condition {
  return ['s.current_period_end >= ? AND (s.current_period_end > ? OR s.id > ?)', periodEnd, periodEnd, id]
}

/** An app's subscriptions that end after `from` and no later than `until`, in the order of their ends. */
export async function listEndingSubscriptions(
  db: Queries,
  appId: number,
  bounds: { readonly from: AppTime; readonly until: AppTime; readonly after: Keyset | null; readonly limit: number },
): Promise<Subscription[]> {
  const { sql, params } = where(
    ['s.app_id = ? AND s.current_period_end <= ?', appId, bounds.until],
    beyond(bounds.after ?? { periodEnd: bounds.from, id: Number.MAX_SAFE_INTEGER }),
  )
  const inOrder = `${sql} ORDER BY s.current_period_end, s.id LIMIT ?`
  return db.all(subscriptions.as('s'), inOrder, [...params, bounds.limit])
}
