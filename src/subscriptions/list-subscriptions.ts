import { appNow } from '#apps/app-time.ts'
import type { App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { listPlansByIds } from '#plans/store.ts'
import { ListQuery, pageBy, parseCursor } from '#http/page-of.ts'
import { addMs } from '#shared/time.ts'
import { validate } from '#shared/validate.ts'
import { presentSubscription } from './present.ts'
import { getSubscription, viewSubscription, type SubscriptionView } from './store.ts'
import { LIFETIME, listSubscriptionsByEnd } from './lists/store.ts'

export interface SubscriptionFilter {
  /** The effective status; null takes both. */
  readonly status: 'active' | 'expired' | null
  /** Only active ones that end within this time; null takes all. */
  readonly withinMs: number | null
}

/** A page of an app's subscriptions as the API presents them, with their `external_ref`, the earliest end first. */
export async function listSubscriptions(ctx: Context, app: App, filter: SubscriptionFilter, page: unknown) {
  const { limit, cursor } = validate(ListQuery, page)
  const { status, withinMs } = filter
  const now = appNow(app, ctx.clock.now())
  const found = await listSubscriptionsByEnd(ctx.db, app.id, {
    status: withinMs === null ? status : 'active',
    now,
    endsBy: withinMs === null ? null : addMs(now, withinMs),
    after: parseCursor(cursor),
    limit: limit + 1,
  })
  const { rows, next } = pageBy(found, limit, ({ currentPeriodEnd }) => currentPeriodEnd ?? LIFETIME)
  const plans = await listPlansByIds(
    ctx.db,
    rows.map(({ planId }) => planId),
  )
  const shown = rows.flatMap((subscription) => {
    const plan = plans.get(subscription.planId)
    if (!plan) return []
    return [{ external_ref: subscription.externalRef, ...presentSubscription({ subscription, plan }, now) }]
  })
  return { rows: shown, next }
}

/** One subscription of the app, for presentation; throws `not_found`. */
export async function subscriptionOf(ctx: Context, app: App, externalRef: string): Promise<SubscriptionView> {
  return viewSubscription(ctx.db, await getSubscription(ctx.db, app.id, externalRef))
}
