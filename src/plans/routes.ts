import { z } from 'zod'
import { route, type AppRoute } from '#apps/authenticate.ts'
import { requireId } from '#shared/ids.ts'
import { addPrice } from './add-price.ts'
import { createPlan } from './create-plan.ts'
import { ListPlansQuery, listPlansOf } from './list-plans.ts'
import { PlanOutput, presentPlan, presentPlanOnSale } from './present.ts'
import { getPlan } from './store.ts'
import { updatePlan } from './update-plan.ts'
import { updatePrice } from './update-price.ts'

type Params = Readonly<Record<string, string>>

const planId = (params: Params): number => requireId('plan', params['id'] ?? '')

export const planRoutes: readonly AppRoute[] = [
  route.query({
    id: 'listPlans',
    summary: 'List plans',
    description: 'All plans of the app, newest first, each with its prices on sale.',
    method: 'GET',
    path: '/api/v1/plans',
    access: 'any',
    filter: ListPlansQuery,
    output: z.strictObject({ plans: z.array(PlanOutput) }),
    query: async (ctx, { caller, query }) => ({
      plans: (await listPlansOf(ctx, caller.appId, query)).map(presentPlanOnSale),
    }),
  }),
  route.query({
    id: 'getPlan',
    summary: 'Get a plan',
    description: 'The plan with its prices on sale.',
    method: 'GET',
    path: '/api/v1/plans/:id',
    access: 'any',
    output: PlanOutput,
    query: async (ctx, { caller, params }) => presentPlanOnSale(await getPlan(ctx.db, caller.appId, planId(params))),
  }),
  route.command({
    id: 'createPlan',
    summary: 'Create a plan',
    description: 'Creates a plan with its first prices.',
    errors: ['plan_code_taken'],
    method: 'POST',
    path: '/api/v1/plans',
    access: 'hmac',
    status: 201,
    command: createPlan,
    scope: ({ caller }) => ({ app: caller.app }),
    output: PlanOutput,
    present: presentPlan,
  }),
  route.command({
    id: 'updatePlan',
    summary: 'Update a plan',
    description:
      'Changes the name or description of a plan, archives or restores it. Archiving takes all its prices off sale; existing subscriptions keep renewing. The response contains all prices.',
    method: 'PATCH',
    path: '/api/v1/plans/:id',
    access: 'hmac',
    command: updatePlan,
    scope: ({ caller, params }) => ({ app: caller.app, planId: planId(params) }),
    output: PlanOutput,
    present: presentPlan,
  }),
  route.command({
    id: 'addPrice',
    summary: 'Add a price',
    description: 'Puts one more price of the plan on sale. The response is the plan with all its prices.',
    method: 'POST',
    path: '/api/v1/plans/:id/prices',
    access: 'hmac',
    status: 201,
    command: addPrice,
    scope: ({ caller, params }) => ({ app: caller.app, planId: planId(params) }),
    output: PlanOutput,
    present: presentPlan,
  }),
  route.command({
    id: 'updatePrice',
    summary: 'Update a price',
    description:
      'Renames, archives or restores a price. Amount, currency and interval never change. Existing subscriptions keep renewing at an archived price.',
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
    present: presentPlan,
  }),
]
