import { z } from 'zod'
import type { Context } from '#context.ts'
import { validate } from '#shared/validate.ts'
import { saleStatus } from './sale-status.ts'
import { listPlans, type PlanWithPrices } from './store.ts'

/** What may follow `GET /api/v1/plans?`. */
export const ListPlansQuery = z.object({ status: saleStatus.optional().describe('Only plans of this status.') })

/** All plans of an app, or those with a status, newest first, each with all its prices. Validates `query`. */
export async function listPlansOf(ctx: Context, appId: number, query: unknown): Promise<PlanWithPrices[]> {
  const { status } = validate(ListPlansQuery, query)
  return listPlans(ctx.db, appId, status)
}
