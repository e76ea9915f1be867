import { appNow } from '#apps/app-time.ts'
import type { App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { listPlansByIds } from '#plans/store.ts'
import { ListQuery, listPage } from '#http/list-page.ts'
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
  const { status, withinMs } = filter
  const now = appNow(app, ctx.clock.now())
  const asked = {
    status: withinMs === null ? status : 'active',
    now,
    endsBy: withinMs === null ? null : addMs(now, withinMs),
  } as const
  const { rows, nextCursor } = await listPage(
    'subscriptions-by-end',
    validate(ListQuery, page),
    (request) => listSubscriptionsByEnd(ctx.db, app.id, { ...asked, ...request }),
    ({ currentPeriodEnd }) => currentPeriodEnd ?? LIFETIME,
  )
  const plans = await listPlansByIds(
    ctx.db,
    rows.map(({ planId }) => planId),
  )
  const shown = rows.flatMap((subscription) => {
    const plan = plans.get(subscription.planId)
    if (!plan) return []
    return [{ external_ref: subscription.externalRef, ...presentSubscription({ subscription, plan }, now) }]
  })
  return { rows: shown, nextCursor }
}

/** One subscription of the app, for presentation; throws `not_found`. */
export async function subscriptionOf(ctx: Context, app: App, externalRef: string): Promise<SubscriptionView> {
  return viewSubscription(ctx.db, await getSubscription(ctx.db, app.id, externalRef))
}
