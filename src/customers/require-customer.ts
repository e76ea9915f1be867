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
 * The customer, if the caller may name it; throws `invalid_request` on `customer_id`. Where an end user's client asks, `endUser` is its
 * `sub`, and anybody else's customer is answered as an unknown one: ids count up. So is one that belongs to nobody, even where the
 * subscription has it already, since before customers had owners any client could attach any of them.
 */
export function requireUsable<Found extends Pick<Customer, 'endUser'>>(
  customer: Found | null,
  endUser: string | null,
): Found {
  if (!customer || (endUser !== null && customer.endUser !== endUser))
    throw invalidField('customer_id', 'is no customer of this app')
  return customer
}
