import { z } from 'zod'
import { formatId } from '#shared/ids.ts'
import { LOCALES } from '#shared/locale.ts'
import { formatTimestamp } from '#shared/time.ts'
import { publicId, timestamp } from '#shared/validate.ts'
import type { Customer } from './store.ts'

/** The Customer of the API. */
export const CustomerOutput = z
  .strictObject({
    id: publicId('cus'),
    name: z.string(),
    email: z.string(),
    merchant_customer_id: z.string().nullable().describe('Your own id for the customer.'),
    cc_emails: z.array(z.string()),
    bcc_emails: z.array(z.string()),
    locale: z.enum(LOCALES).describe('The language of mails and pages.'),
    created_at: timestamp,
    updated_at: timestamp,
  })
  .meta({
    id: 'Customer',
    description: 'A person who receives the reminders of a subscription.',
    examples: [
      {
        id: 'cus_1',
        name: 'An Nguyen',
        email: 'an@example.com',
        merchant_customer_id: 'user-42',
        cc_emails: [],
        bcc_emails: [],
        locale: 'vi',
        created_at: '2026-12-01 09:30:00',
        updated_at: '2026-12-01 09:30:00',
      },
    ],
  })

export function presentCustomer(customer: Customer): z.input<typeof CustomerOutput> {
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
