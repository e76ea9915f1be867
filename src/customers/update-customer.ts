import type { z } from 'zod'
import type { App } from '#apps/store.ts'
import { command } from '#commands/command.ts'
import { noFieldsLeft } from '#shared/no-fields-left.ts'
import { given, patchOf } from '#shared/patch.ts'
import { optionalFields, requiredFields } from './customer-fields.ts'
import { presentCustomer } from './present.ts'
import { getCustomer, lockCustomer, updateCustomerRow, type Customer } from './store.ts'

export const UpdateCustomerInput = patchOf({
  name: requiredFields.name.optional(),
  email: requiredFields.email.optional(),
  ...optionalFields,
}).meta({ examples: [{ email: 'an.nguyen@example.com', cc_emails: ['accounts@example.com'] }] })

/**
 * Changes a customer; null empties a list, sets the locale to `en` and clears the merchant's id. Throws `not_found`.
 */
export const updateCustomer = command({
  name: 'customer.update',
  input: UpdateCustomerInput,
  async run(tx, fields, { app, customerId }: { readonly app: App; readonly customerId: number }) {
    const current = await lockCustomer(tx, app.id, customerId)
    await updateCustomerRow(tx, customerId, changesOf(fields))
    const updated = await getCustomer(tx, app.id, customerId)
    const [before, after] = [presentCustomer(current), presentCustomer(updated)]
    await tx.audit({ appId: app.id, subject: `customer ${customerId}`, before, after })
    return updated
  },
})

function changesOf(fields: z.infer<typeof UpdateCustomerInput>): Partial<Customer> {
  const { name, email, merchant_customer_id, cc_emails, bcc_emails, locale, ...others } = fields
  noFieldsLeft(others)
  return given<Customer>({
    name,
    email,
    merchantCustomerId: merchant_customer_id,
    ccEmails: cc_emails === null ? [] : cc_emails,
    bccEmails: bcc_emails === null ? [] : bcc_emails,
    locale: locale === null ? ('en' as const) : locale,
  })
}
