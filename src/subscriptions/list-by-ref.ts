import { z } from 'zod'
import { appNow } from '#apps/app-time.ts'
import type { App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { listPage, listQueryFields, presentPage, type Page } from '#http/list-page.ts'
import { addMs, SECOND_MS } from '#shared/time.ts'
import { givenTime, text, validate } from '#shared/validate.ts'
import { presentSubscription, SUBSCRIPTION_EXAMPLE, SubscriptionOutput } from './present.ts'
import { listSubscriptionsByRef } from './lists/store.ts'

/** The query parameters of `GET /api/v1/subscriptions`. */
export const ListSubscriptionsQuery = z.object({
  ...listQueryFields,
  status: z
    .enum(['active', 'expired'], 'must be active or expired')
    .optional()
    .describe('Only subscriptions that are valid now, or only those that ended.'),
  plan: text(64).optional().describe('Only subscriptions of the plan with this `code`.'),
  ends_after: givenTime.optional().describe('Only those whose `current_period_end` is later. Lifetime has no end.'),
  ends_before: givenTime.optional().describe('Only those whose `current_period_end` is earlier. Lifetime has no end.'),
})

/** The Subscription in a list, where no path names its end user. */
export const ListedSubscriptionOutput = SubscriptionOutput.extend({
  external_ref: z.string().describe('Your own id for the end user.'),
}).meta({
  id: 'ListedSubscription',
  description: 'A subscription with the end user who has it.',
  examples: [{ external_ref: 'user-42', ...SUBSCRIPTION_EXAMPLE }],
})

/** A page of an app's subscriptions as the API presents them, ordered by `external_ref`. `query` is the request's. */
export async function listByRef(
  ctx: Context,
  app: App,
  query: unknown,
): Promise<Page<z.input<typeof ListedSubscriptionOutput>>> {
  const { status, plan, ends_after, ends_before, ...page } = validate(ListSubscriptionsQuery, query)
  const now = appNow(app, ctx.clock.now())
  const filter = {
    status: status ?? null,
    now,
    planCode: plan ?? null,
    // Ends are shown in whole seconds, so “later” means a later second.
    endsFrom: ends_after ? addMs(ends_after, SECOND_MS) : null,
    endsBefore: ends_before ?? null,
  }
  const found = await listPage(
    'subscriptions',
    page,
    ({ after, limit }) => listSubscriptionsByRef(ctx.db, app.id, { ...filter, afterId: after?.id ?? null, limit }),
    ({ createdAt }) => createdAt,
  )
  return presentPage(found, (subscription) => ({
    external_ref: subscription.externalRef,
    ...presentSubscription({ subscription, plan: { code: subscription.planCode } }, now),
  }))
}
