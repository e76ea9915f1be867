import type { Queries } from '#db/queries.ts'
import { AppError } from '#shared/errors.ts'
import { parseId } from '#shared/ids.ts'
import { findPrice, type OfferedPrice, type PriceWithPlan } from './store.ts'

/** The app's price that can be bought now; unknown, another app's, archived, or of an archived plan: `price_not_found`. */
export async function findPriceOnSale(db: Queries, appId: number, priceId: string): Promise<PriceWithPlan> {
  const id = parseId('price', priceId)
  return requireOnSale(id === null ? null : await findPrice(db, appId, id))
}

/** The price, if it can be bought now; throws `price_not_found`. */
export function requireOnSale<Found extends OfferedPrice>(found: Found | null): Found {
  if (!found || found.price.status === 'archived' || found.plan.status === 'archived') throw notOnSale()
  return found
}

export function notOnSale(): AppError {
  return new AppError('price_not_found', 'price_id: no price of this id is on sale', { field: 'price_id' })
}
