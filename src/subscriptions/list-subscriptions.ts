import { appNow } from '#apps/app-time.ts'
import type { App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { listPlansByIds } from '#plans/store.ts'
import { addMs } from '#shared/time.ts'
import { presentSubscription, viewSubscription, type SubscriptionView } from './present.ts'
import { getSubscription, listSubscriptionsByEnd } from './store.ts'

export interface SubscriptionFilter {
  /** The effective status; null takes both. */
  readonly status: 'active' | 'expired' | null
  /** Only active ones that end within this time; null takes all. */
  readonly withinMs: number | null
}

/** An app's subscriptions as the API presents them, with their `external_ref`, the earliest end first. */
export async function listSubscriptions(ctx: Context, app: App, { status, withinMs }: SubscriptionFilter) {
  const now = appNow(app, ctx.clock.now())
  const isActive = withinMs === null ? status : 'active'
  const rows = await listSubscriptionsByEnd(ctx.db, app.id, {
    status: isActive,
    now,
    endsBy: withinMs === null ? null : addMs(now, withinMs),
  })
  const plans = await listPlansByIds(
    ctx.db,
    rows.map(({ planId }) => planId),
  )
  return rows.flatMap((subscription) => {
    const plan = plans.get(subscription.planId)
    if (!plan) return []
    return [{ external_ref: subscription.externalRef, ...presentSubscription({ subscription, plan }, now) }]
  })
}

/** One subscription of the app, for presentation; throws `not_found`. */
export async function subscriptionOf(ctx: Context, app: App, externalRef: string): Promise<SubscriptionView> {
  return viewSubscription(ctx.db, await getSubscription(ctx.db, app.id, externalRef))
}
