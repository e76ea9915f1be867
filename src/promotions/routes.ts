import { route, type AppRoute } from '#apps/authenticate.ts'
import { ListQuery } from '#http/list-page.ts'
import { requireId } from '#shared/ids.ts'
import { createPromotion } from './create-promotion.ts'
import { listPromotions } from './list-promotions.ts'
import { presentPromotion, PromotionOutput } from './present.ts'
import { getPromotion } from './store.ts'
import { updatePromotion } from './update-promotion.ts'

const promotionId = (params: Readonly<Record<string, string>>): number => requireId('promo', params['id'] ?? '')

export const promotionRoutes: readonly AppRoute[] = [
  route.list({
    id: 'listPromotions',
    summary: 'List promotions',
    description: 'Newest first.',
    filter: ListQuery,
    method: 'GET',
    path: '/api/v1/promotions',
    access: 'hmac',
    item: PromotionOutput,
    list: (ctx, { caller, query }) => listPromotions(ctx, caller.appId, query),
    present: presentPromotion,
  }),
  route.query({
    id: 'getPromotion',
    summary: 'Get a promotion',
    description: 'One promotion by its id, with the number of its uses.',
    method: 'GET',
    path: '/api/v1/promotions/:id',
    access: 'hmac',
    output: PromotionOutput,
    query: async (ctx, { caller, params }) =>
      presentPromotion(await getPromotion(ctx.db, caller.appId, promotionId(params))),
  }),
  route.command({
    id: 'createPromotion',
    summary: 'Create a promotion',
    description:
      'Creates a code that takes a percentage or an amount off a payment. Give exactly one of `percent`, and `amount` with `currency`. The code and what it takes off never change.',
    errors: ['promotion_code_taken'],
    method: 'POST',
    path: '/api/v1/promotions',
    access: 'hmac',
    status: 201,
    command: createPromotion,
    scope: ({ caller }) => ({ app: caller.app }),
    output: PromotionOutput,
    present: presentPromotion,
  }),
  route.command({
    id: 'updatePromotion',
    summary: 'Update a promotion',
    description:
      'Archives or restores a promotion, or changes its end or how many may use it; null lifts either. Open checkouts keep their discount, and so do the renewals of `every_period`.',
    method: 'PATCH',
    path: '/api/v1/promotions/:id',
    access: 'hmac',
    command: updatePromotion,
    scope: ({ caller, params }) => ({ app: caller.app, promotionId: promotionId(params) }),
    output: PromotionOutput,
    present: presentPromotion,
  }),
]
