import type { z } from 'zod'
import type { Context } from '#context.ts'
import { presentCustomer, type CustomerOutput } from './present.ts'
import { getCustomer } from './store.ts'

/** One customer of the app, as the API gives it; throws `not_found`. */
export async function showCustomer(
  ctx: Context,
  appId: number,
  customerId: number,
): Promise<z.infer<typeof CustomerOutput>> {
  return presentCustomer(await getCustomer(ctx.db, appId, customerId))
}
