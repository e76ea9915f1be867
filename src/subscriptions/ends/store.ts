import type { ClockScope } from '#apps/clock-groups.ts'
import { following, where, type Condition, type Position } from '#db/conditions.ts'
import type { Queries } from '#db/queries.ts'
import type { AppTime } from '#shared/time.ts'
import { subscriptions, type Subscription } from '#subscriptions/store.ts'

/** The place of a subscription in the order of the ends of periods; null for a lifetime, which has none. */
export function endOf({ id, currentPeriodEnd: at }: Pick<Subscription, 'id' | 'currentPeriodEnd'>): Position | null {
  return at && { at, id }
}

/** The condition for subscriptions of a scope, as rows `s` and `a`. `index`: the scope's own index on period ends, or null. */
export function inScopeOf(scope: ClockScope): { readonly index: string | null; readonly condition: Condition } {
  return scope === 'apps in real time'
    ? { index: null, condition: ['a.clock_offset_ms = 0'] }
    : { index: 'subscriptions_app_end', condition: ['s.app_id = ?', scope.appId] }
}

/** The order of the ends of periods, of subscriptions `s`. */
export const BY_END = ['s.current_period_end', 's.id'] as const

/** An app's subscriptions that end after `from` and no later than `until`, in the order of their ends. */
export async function listEndingSubscriptions(
  db: Queries,
  appId: number,
  bounds: { readonly from: AppTime; readonly until: AppTime; readonly after: Position | null; readonly limit: number },
): Promise<Subscription[]> {
  const { sql, params } = where(
    ['s.app_id = ? AND s.current_period_end <= ?', appId, bounds.until],
    following(bounds.after ?? { at: bounds.from, id: Number.MAX_SAFE_INTEGER }, BY_END, 'asc'),
  )
  const inOrder = `${sql} ORDER BY s.current_period_end, s.id LIMIT ?`
  return db.all(subscriptions.as('s'), inOrder, [...params, bounds.limit])
}
