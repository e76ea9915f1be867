import { z } from 'zod'
import type { Context } from '#context.ts'
import { listQueryFields, pageOf, parseCursor, type Page } from '#http/page-of.ts'
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
  const { limit, cursor, merchant_customer_id, email } = validate(ListCustomersQuery, query)
  const rows = await listCustomerRows(ctx.db, {
    appId,
    merchantCustomerId: merchant_customer_id ?? null,
    email: email ?? null,
    below: parseCursor(cursor),
    limit: limit + 1,
  })
  return pageOf(rows, limit)
}
