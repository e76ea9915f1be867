import { z } from 'zod'
import type { Context } from '#context.ts'
import { listPage, listQueryFields, type Page } from '#http/list-page.ts'
import { emailAddress, text, validate } from '#shared/validate.ts'
import { listCustomerRows, type Customer } from './store.ts'

/** What may follow `GET /api/v1/customers?`. */
export const ListCustomersQuery = z.object({
  ...listQueryFields,
  merchant_customer_id: text(191).optional().describe('Only customers with this `merchant_customer_id`.'),
  email: emailAddress.optional().describe('Only customers with this email address.'),
})

/** A page of an app's customers, newest first. Validates `query`. */
export async function listCustomers(ctx: Context, appId: number, query: unknown): Promise<Page<Customer>> {
  const { merchant_customer_id, email, ...page } = validate(ListCustomersQuery, query)
  const filter = { appId, merchantCustomerId: merchant_customer_id ?? null, email: email ?? null }
  return listPage(
    'customers',
    page,
    (request) => listCustomerRows(ctx.db, { ...filter, ...request }),
    ({ createdAt }) => createdAt,
  )
}
