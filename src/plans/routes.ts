import { z } from 'zod'
import { route, type AppRoute } from '#apps/authenticate.ts'
import { requireId } from '#shared/ids.ts'
import { addPrice } from './add-price.ts'
import { createPlan } from './create-plan.ts'
import { listPlansOf, planOf } from './list-plans.ts'
import { PlanOutput, presentPlan } from './present.ts'
import type { PlanWithPrices } from './store.ts'
import { updatePlan } from './update-plan.ts'
import { updatePrice } from './update-price.ts'

type Params = Readonly<Record<string, string>>

const planId = (params: Params): number => requireId('plan', params['id'] ?? '')
const presentOnSale = (plan: PlanWithPrices) => presentPlan(plan, { all: false })
const presentAll = (plan: PlanWithPrices) => presentPlan(plan, { all: true })

export const planRoutes: readonly AppRoute[] = [
  route.query({
    method: 'GET',
    path: '/api/v1/plans',
    access: 'any',
    output: z.strictObject({ plans: z.array(PlanOutput) }),
    query: async (ctx, { caller, query }) => ({
      plans: (await listPlansOf(ctx, caller.appId, query)).map(presentOnSale),
    }),
  }),
  route.query({
    method: 'GET',
    path: '/api/v1/plans/:id',
    access: 'any',
    output: PlanOutput,
    query: async (ctx, { caller, params }) => presentOnSale(await planOf(ctx, caller.appId, planId(params))),
  }),
  route.command({
    method: 'POST',
    path: '/api/v1/plans',
    access: 'hmac',
    status: 201,
    command: createPlan,
    scope: ({ caller }) => ({ app: caller.app }),
    output: PlanOutput,
    present: presentAll,
  }),
  route.command({
    method: 'PATCH',
    path: '/api/v1/plans/:id',
    access: 'hmac',
    command: updatePlan,
    scope: ({ caller, params }) => ({ app: caller.app, planId: planId(params) }),
    output: PlanOutput,
    present: presentAll,
  }),
  route.command({
    method: 'POST',
    path: '/api/v1/plans/:id/prices',
    access: 'hmac',
    status: 201,
    command: addPrice,
    scope: ({ caller, params }) => ({ app: caller.app, planId: planId(params) }),
    output: PlanOutput,
    present: presentAll,
  }),
  route.command({
    method: 'PATCH',
    path: '/api/v1/plans/:id/prices/:priceId',
    access: 'hmac',
    command: updatePrice,
    scope: ({ caller, params }) => ({
      app: caller.app,
      planId: planId(params),
      priceId: requireId('price', params['priceId'] ?? ''),
    }),
    output: PlanOutput,
    present: presentAll,
  }),
]
