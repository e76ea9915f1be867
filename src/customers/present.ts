import { formatId } from '#shared/ids.ts'
import { formatTimestamp } from '#shared/time.ts'
import type { Customer } from './store.ts'

/** The Customer of the API (specification 2, contract 3). */
export function presentCustomer(customer: Customer): Record<string, unknown> {
  return {
    id: formatId('cus', customer.id),
    name: customer.name,
    email: customer.email,
    merchant_customer_id: customer.merchantCustomerId,
    cc_emails: customer.ccEmails,
    bcc_emails: customer.bccEmails,
    locale: customer.locale,
    created_at: formatTimestamp(customer.createdAt),
    updated_at: formatTimestamp(customer.updatedAt),
  }
}
