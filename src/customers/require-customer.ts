import type { Queries } from '#db/queries.ts'
import { invalidField } from '#shared/errors.ts'
import { parseId } from '#shared/ids.ts'
import { findCustomer, type Customer } from './store.ts'

/** The app's customer that a request's `customer_id` names; throws `invalid_request` on that field. `endUser` as for `requireUsable`. */
export async function requireCustomer(
  db: Queries,
  appId: number,
  customerId: string,
  endUser: string | null,
): Promise<Customer> {
  const id = parseId('cus', customerId)
  return requireUsable(id === null ? null : await findCustomer(db, appId, id), endUser)
}

/**
 * The customer, if the caller may name it; throws `invalid_request` on `customer_id`. `endUser` is the `sub` of the end user whose client
 * calls, null for a seller's server. For a client, a customer that is not its own looks like an unknown one, because ids are sequential.
 * That includes customers without an owner, even one that its subscription has: before customers had owners, any client could attach any.
 */
export function requireUsable<Found extends Pick<Customer, 'endUser'>>(
  customer: Found | null,
  endUser: string | null,
): Found {
  if (!customer || (endUser !== null && customer.endUser !== endUser))
    throw invalidField('customer_id', 'is not a customer of this app')
  return customer
}
