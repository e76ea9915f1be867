import { appNow } from '#apps/app-time.ts'
import { requireSelf, route, type ApiCaller, type AppRoute } from '#apps/authenticate.ts'
import type { ApiRequest } from '#http/route.ts'
import type { RealTime } from '#shared/time.ts'
import { attachCustomer } from './attach-customer.ts'
import { ListedSubscriptionOutput, listByRef, ListSubscriptionsQuery } from './list-by-ref.ts'
import { presentSubscription, SubscriptionOutput } from './present.ts'
import { getSubscriptionWithPlanCode, type SubscriptionView } from './store.ts'
import { switchPlan } from './switch-plan.ts'

type Request = ApiRequest<ApiCaller>

const present = (view: SubscriptionView, now: RealTime, { caller }: Request) =>
  presentSubscription(view, appNow(caller.app, now))

export const subscriptionRoutes: readonly AppRoute[] = [
  route.list({
    id: 'listSubscriptions',
    summary: 'List subscriptions',
    description: 'Each with its `external_ref`; ordered by it, byte by byte.',
    filter: ListSubscriptionsQuery,
    method: 'GET',
    path: '/api/v1/subscriptions',
    access: 'hmac',
    item: ListedSubscriptionOutput,
    list: (ctx, { caller, query }) => listByRef(ctx, caller.app, query),
    present: (row) => row,
  }),
  route.query({
    id: 'getSubscription',
    summary: 'Get a subscription',
    description: 'Use this to check whether an end user has access. 404 if they never had any.',
    method: 'GET',
    path: '/api/v1/subscriptions/:externalRef',
    access: 'any',
    output: SubscriptionOutput,
    async query(ctx, request) {
      const { app } = request.caller
      const subscription = await getSubscriptionWithPlanCode(ctx.db, app.id, ownRef(request))
      return presentSubscription({ subscription, plan: { code: subscription.planCode } }, appNow(app, ctx.clock.now()))
    },
  }),
  route.command({
    id: 'switchPlan',
    summary: 'Switch plan',
    description:
      'Moves the subscription to a price on sale of any plan. The period stays; the next renewal costs the new price.',
    errors: ['price_not_found', 'already_lifetime'],
    method: 'PUT',
    path: '/api/v1/subscriptions/:externalRef/plan',
    access: 'hmac',
    command: switchPlan,
    scope: (request) => ({ app: request.caller.app, externalRef: ownRef(request) }),
    output: SubscriptionOutput,
    present,
  }),
  route.command({
    id: 'attachCustomer',
    summary: 'Attach a customer',
    description: 'From then on, this customer receives the reminders.',
    method: 'PUT',
    path: '/api/v1/subscriptions/:externalRef/customer',
    access: 'any',
    command: attachCustomer,
    scope: (request) => {
      const { app, endUser } = request.caller
      return { app, externalRef: ownRef(request), endUser }
    },
    output: SubscriptionOutput,
    present,
  }),
]

/** Throws `forbidden` if a client names another end user. */
function ownRef({ caller, params }: Request): string {
  const externalRef = params['externalRef'] ?? ''
  requireSelf(caller, externalRef)
  return externalRef
}
