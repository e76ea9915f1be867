import type { AppRoute, Caller } from '#apps/authenticate.ts'
import { commandRoute, type ApiRequest } from '#http/route.ts'
import { requireId } from '#shared/ids.ts'
import { addPrice } from './add-price.ts'
import { createPlan } from './create-plan.ts'
import { listPlansOf } from './list-plans.ts'
import { presentPlan } from './present.ts'
import { getPlan } from './store.ts'
import { updatePlan } from './update-plan.ts'
import { updatePrice } from './update-price.ts'

const ON_SALE = { all: false }
const ALL = { all: true }

export const planRoutes: readonly AppRoute[] = [
  {
    method: 'GET',
    path: '/api/v1/plans',
    access: 'any',
    async run(ctx, { caller, query }) {
      const plans = await listPlansOf(ctx, caller.appId, query)
      return { data: { plans: plans.map((plan) => presentPlan(plan, ON_SALE)) } }
    },
  },
  {
    method: 'GET',
    path: '/api/v1/plans/:id',
    access: 'any',
    async run(ctx, { caller, params }) {
      return { data: presentPlan(await getPlan(ctx.db, caller.appId, planId(params)), ON_SALE) }
    },
  },
  commandRoute({
    method: 'POST',
    path: '/api/v1/plans',
    access: 'hmac',
    run: (ctx, { caller, body }: ApiRequest<Caller>) => createPlan(ctx, caller.app, body),
    answer: (_ctx, _request, plan) => ({ status: 201, data: presentPlan(plan, ALL) }),
  }),
  {
    method: 'PATCH',
    path: '/api/v1/plans/:id',
    access: 'hmac',
    async run(ctx, { caller, params, body }) {
      return { data: presentPlan(await updatePlan(ctx, caller.app, planId(params), body), ALL) }
    },
  },
  commandRoute({
    method: 'POST',
    path: '/api/v1/plans/:id/prices',
    access: 'hmac',
    run: async (ctx, { caller, params, body }: ApiRequest<Caller>) => addPrice(ctx, caller.app, planId(params), body),
    answer: (_ctx, _request, plan) => ({ status: 201, data: presentPlan(plan, ALL) }),
  }),
  {
    method: 'PATCH',
    path: '/api/v1/plans/:id/prices/:priceId',
    access: 'hmac',
    async run(ctx, { caller, params, body }) {
      const priceId = requireId('price', params['priceId'] ?? '')
      return { data: presentPlan(await updatePrice(ctx, caller.app, planId(params), priceId, body), ALL) }
    },
  },
]

function planId(params: Readonly<Record<string, string>>): number {
  return requireId('plan', params['id'] ?? '')
}
