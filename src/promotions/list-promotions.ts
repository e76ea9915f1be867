import type { Context } from '#context.ts'
import { ListQuery, listPage, type Page } from '#http/list-page.ts'
import { validate } from '#shared/validate.ts'
import { listPromotionRows, type ShownPromotion } from './store.ts'

/** A page of an app's promotions, newest first. Validates `query`. */
export async function listPromotions(ctx: Context, appId: number, query: unknown): Promise<Page<ShownPromotion>> {
  return listPage(
    'promotions',
    validate(ListQuery, query),
    (request) => listPromotionRows(ctx.db, { appId, ...request }),
    ({ createdAt }) => createdAt,
  )
}
