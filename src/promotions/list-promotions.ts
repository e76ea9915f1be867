import type { Context } from '#context.ts'
import { listPage, type Page } from '#http/page-of.ts'
import { listPromotionRows, type ShownPromotion } from './store.ts'

/** A page of an app's promotions, newest first. Validates `query`. */
export async function listPromotions(ctx: Context, appId: number, query: unknown): Promise<Page<ShownPromotion>> {
  return listPage(
    query,
    (request) => listPromotionRows(ctx.db, { appId, ...request }),
    ({ createdAt }) => createdAt,
  )
}
