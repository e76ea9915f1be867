import { bigint, id } from '#db/columns.ts'
import { where, type Condition } from '#db/conditions.ts'
import type { Queries } from '#db/queries.ts'
import { shape } from '#db/table.ts'
import type { AppTime, RealTime } from '#shared/time.ts'
import { subscriptions, type Subscription } from '#subscriptions/store.ts'
import { receipts, type Receipt } from '#transactions/store.ts'
import { endsInWindow, type Stage } from '#mails/stages.ts'
import { claimable } from '#mails/store.ts'

/** Which subscriptions a sweep covers: one app's, or those of all apps in real time. */
export type SweepScope = { readonly appId: number } | 'apps in real time'

export interface Keyset {
  readonly periodEnd: AppTime
  readonly id: number
}

/** Where a subscription stands among those in the order of their ends; null for a lifetime, which has none. */
export function endOf({ id, currentPeriodEnd: periodEnd }: Subscription): Keyset | null {
  return periodEnd && { periodEnd, id }
}

/** Apps whose test clock was moved. Each has its own present, and so a sweep of its own. */
export async function listMovedApps(db: Queries): Promise<{ id: number; clockOffsetMs: number }[]> {
  return db.all(
    shape({ id: id(), clockOffsetMs: bigint() }),
    'SELECT id, clock_offset_ms AS clockOffsetMs FROM apps WHERE clock_offset_ms <> 0 ORDER BY id',
  )
}

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
    readonly scope: SweepScope
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

/** Subscriptions of a scope, as rows `s` and `a`, and the index that orders them by period end, if there is one of their own. */
export function inScopeOf(scope: SweepScope): { readonly index: string | null; readonly condition: Condition } {
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

/** Receipts of a status that may be claimed by `now`, and follow `after`. */
export async function listDueReceipts(
  db: Queries,
  status: 'due' | 'failed',
  now: RealTime,
  after: Pick<Receipt, 'id' | 'retryAt'> | null,
  limit: number,
): Promise<Receipt[]> {
  const { sql, params } = where(
    ['status = ? AND next_try_at <= ?', status, now],
    after && ['(next_try_at > ? OR (next_try_at = ? AND id > ?))', after.retryAt, after.retryAt, after.id],
  )
  return db.all(receipts, `${sql} ORDER BY next_try_at, id LIMIT ?`, [...params, limit])
}
