import type { ReadOnly } from '#db/transaction.ts'
import { invalidField } from '#shared/errors.ts'
import { parseId } from '#shared/ids.ts'
import { findCustomer } from './store.ts'
import type { Customer } from './store.ts'

/** The app's customer that a request's `customer_id` names; throws `invalid_request` on that field. */
export async function requireCustomer(db: ReadOnly, appId: number, customerId: string): Promise<Customer> {
  const id = parseId('cus', customerId)
  const customer = id === null ? null : await findCustomer(db, appId, id)
  if (!customer) throw invalidField('customer_id', 'is no customer of this app')
  return customer
}
