import { id } from '#db/columns.ts'
import { following, where, type Condition, type PageRequest } from '#db/conditions.ts'
import type { Queries } from '#db/queries.ts'
import { shape } from '#db/table.ts'
import type { AppTime } from '#shared/time.ts'
import {
  subscriptions,
  subscriptionsWithPlanCode,
  type Subscription,
  type SubscriptionWithPlanCode,
} from '#subscriptions/store.ts'

/** Which of an app's subscriptions a list shows. Times are the app's own. */
export interface RefFilter {
  readonly status: 'active' | 'expired' | null
  readonly now: AppTime
  readonly planCode: string | null
  readonly endsFrom: AppTime | null
  readonly endsBefore: AppTime | null
}

/** Number of subscriptions read by one statement. */
const PART = 101

/**
 * At most `limit` of an app's subscriptions, ordered by `external_ref`, starting after the subscription `afterId`. No index has the ends in
 * this order. If few subscriptions match by their end, they are found by the index of ends; otherwise the list is read in order, part by
 * part.
 */
export async function listSubscriptionsByRef(
  db: Queries,
  appId: number,
  { afterId, limit, ...filter }: RefFilter & { readonly afterId: number | null; readonly limit: number },
): Promise<SubscriptionWithPlanCode[]> {
  const ends = endConditions(filter)
  const few = ends.length === 0 ? null : await findFew(db, appId, ends)
  if (few?.length === 0) return []
  if (few) return listBehind(db, appId, filter.planCode, { afterId, limit }, few)
  const found: SubscriptionWithPlanCode[] = []
  for (let behind = afterId; ;) {
    const page = { afterId: behind, limit: ends.length === 0 ? limit : PART }
    const part = await listBehind(db, appId, filter.planCode, page)
    found.push(...part.filter((row) => endsWithin(row, filter)))
    const last = part.at(-1)
    if (!last || part.length < page.limit || found.length >= limit) return found.slice(0, limit)
    behind = last.id
  }
}

function endConditions({ status, now, endsFrom, endsBefore }: RefFilter): readonly Condition[] {
  return [
    status === 'active' ? (['(current_period_end IS NULL OR current_period_end > ?)', now] as const) : null,
    status === 'expired' ? (['current_period_end <= ?', now] as const) : null,
    endsFrom && (['current_period_end >= ?', endsFrom] as const),
    endsBefore && (['current_period_end < ?', endsBefore] as const),
  ].filter((condition) => condition !== null)
}

/** The conditions of `endConditions`, in code. */
function endsWithin(
  { currentPeriodEnd: end }: Subscription,
  { status, now, endsFrom, endsBefore }: RefFilter,
): boolean {
  if (end === null) return status !== 'expired' && !endsFrom && !endsBefore
  if (status !== null && status !== (end > now ? 'active' : 'expired')) return false
  return (!endsFrom || end >= endsFrom) && (!endsBefore || end < endsBefore)
}

/** The ids of those that match by their end; null if there are many. */
async function findFew(db: Queries, appId: number, ends: readonly Condition[]): Promise<number[] | null> {
  const { sql, params } = where(['app_id = ?', appId], ...ends)
  const rows = await db.all(
    shape({ id: id() }),
    `SELECT id FROM subscriptions FORCE INDEX (subscriptions_app_end) ${sql} LIMIT ?`,
    [...params, PART],
  )
  return rows.length < PART ? rows.map((row) => row.id) : null
}

async function listBehind(
  db: Queries,
  appId: number,
  planCode: string | null,
  { afterId, limit }: { readonly afterId: number | null; readonly limit: number },
  among: readonly number[] | null = null,
): Promise<SubscriptionWithPlanCode[]> {
  const { sql, params } = where(
    ['s.app_id = ?', appId],
    planCode === null ? null : ['s.plan_id = (SELECT id FROM plans WHERE app_id = ? AND code = ?)', appId, planCode],
    afterId === null
      ? null
      : ['s.external_ref > (SELECT external_ref FROM subscriptions WHERE id = ? AND app_id = ?)', afterId, appId],
    among && ['s.id IN (?)', among],
  )
  const inOrder = planCode === null ? 'subscriptions_app_ref' : 'subscriptions_app_plan'
  // Otherwise servers begin with the plans, and sort all subscriptions for each page.
  return db.all(
    subscriptionsWithPlanCode,
    `FORCE INDEX (${among ? 'PRIMARY' : inOrder}) STRAIGHT_JOIN plans p ON p.id = s.plan_id ${sql} ORDER BY s.external_ref LIMIT ?`,
    [...params, limit],
  )
}

/** A page of subscriptions by ascending id; `appId` null takes those of all apps. */
export async function listSubscriptionsAfter(
  db: Queries,
  appId: number | null,
  afterId: number,
  limit: number,
): Promise<Subscription[]> {
  const listed = where(['id > ?', afterId], appId === null ? null : ['app_id = ?', appId])
  return db.all(subscriptions, `${listed.sql} ORDER BY id LIMIT ?`, [...listed.params, limit])
}

/** The end of lifetime subscriptions in a position, after the year 9999: their place is after all others. */
export const LIFETIME = new Date(999_999_999_999_999)

/**
 * At most `limit` of an app's subscriptions, those after `after`: the earliest end first, lifetime ones last. `now` and `endsBy` are in the
 * app's own time.
 */
export async function listSubscriptionsByEnd(
  db: Queries,
  appId: number,
  filter: PageRequest & {
    readonly status: 'active' | 'expired' | null
    readonly now: AppTime
    readonly endsBy: AppTime | null
  },
): Promise<Subscription[]> {
  const { status, now, endsBy, after, limit } = filter
  const isAmongLifetimes = after !== null && after.at.getTime() === LIFETIME.getTime()
  const listed = where(
    ['app_id = ? AND current_period_end IS NOT NULL', appId],
    status === 'active' ? ['current_period_end > ?', now] : null,
    status === 'expired' ? ['current_period_end <= ?', now] : null,
    endsBy && ['current_period_end <= ?', endsBy],
    following(after, ['current_period_end', 'id'], 'asc'),
  )
  // Two statements, because the index has the lifetime ones first.
  const ending = isAmongLifetimes
    ? []
    : await db.all(subscriptions, `${listed.sql} ORDER BY current_period_end, id LIMIT ?`, [...listed.params, limit])
  if (ending.length === limit || status === 'expired' || endsBy) return ending
  const lifetime = await db.all(
    subscriptions,
    'WHERE app_id = ? AND current_period_end IS NULL AND id > ? ORDER BY id LIMIT ?',
    [appId, isAmongLifetimes ? after.id : 0, limit - ending.length],
  )
  return [...ending, ...lifetime]
}
