import { appNow } from '#apps/app-time.ts'
import { requireSelf, type AppRoute, type Caller } from '#apps/authenticate.ts'
import type { Context } from '#context.ts'
import { commandRoute, type ApiAnswer, type ApiRequest } from '#http/route.ts'
import { attachCustomer } from './attach-customer.ts'
import { presentSubscription } from './present.ts'
import { getSubscriptionWithPlanCode } from './store.ts'
import { switchPlan } from './switch-plan.ts'

export const subscriptionRoutes: readonly AppRoute[] = [
  {
    method: 'GET',
    path: '/api/v1/subscriptions/:externalRef',
    access: 'any',
    async run(ctx, { caller, params }) {
      const externalRef = ownRef(caller, params)
      const subscription = await getSubscriptionWithPlanCode(ctx.db, caller.appId, externalRef)
      return answer(ctx, { caller }, { subscription, plan: { code: subscription.planCode } })
    },
  },
  commandRoute({
    method: 'PUT',
    path: '/api/v1/subscriptions/:externalRef/plan',
    access: 'hmac',
    run: async (ctx, { caller, params, body }: ApiRequest<Caller>) =>
      switchPlan(ctx, caller.app, ownRef(caller, params), body),
    answer,
  }),
  commandRoute({
    method: 'PUT',
    path: '/api/v1/subscriptions/:externalRef/customer',
    access: 'any',
    run: async (ctx, { caller, params, body }: ApiRequest<Caller>) =>
      attachCustomer(ctx, caller.app, ownRef(caller, params), body, null, caller.endUser),
    answer,
  }),
]

function ownRef(caller: Caller, params: Readonly<Record<string, string>>): string {
  const externalRef = params['externalRef'] ?? ''
  requireSelf(caller, externalRef)
  return externalRef
}

function answer(
  ctx: Context,
  { caller }: Pick<ApiRequest<Caller>, 'caller'>,
  view: Parameters<typeof presentSubscription>[0],
): ApiAnswer {
  return { data: presentSubscription(view, appNow(caller.app, ctx.clock.now())) }
}
