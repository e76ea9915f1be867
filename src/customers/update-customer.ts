import type { z } from 'zod'
import type { App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { recordAudit } from '#commands/audit.ts'
import { inTransaction } from '#commands/transaction.ts'
import { given, patchOf } from '#shared/patch.ts'
import { validate } from '#shared/validate.ts'
import { optionalFields, requiredFields } from './customer-fields.ts'
import { presentCustomer } from './present.ts'
import { getCustomer, updateCustomerRow, type Customer } from './store.ts'

export const UpdateCustomerInput = patchOf({
  name: requiredFields.name.optional(),
  email: requiredFields.email.optional(),
  ...optionalFields,
})

/**
 * Changes a customer; null empties a list, sets the locale to `en` and clears the merchant's id. Mails sent from then on follow.
 * Throws `invalid_request` and `not_found`. `actor` is an operator's login name, null for the API.
 */
export async function updateCustomer(
  ctx: Context,
  app: App,
  customerId: number,
  input: unknown,
  actor: string | null = null,
): Promise<Customer> {
  const changes = changesOf(validate(UpdateCustomerInput, input))
  return inTransaction(ctx, async (tx) => {
    const current = await getCustomer(tx, app.id, customerId)
    await updateCustomerRow(tx, customerId, changes)
    const updated = await getCustomer(tx, app.id, customerId)
    if (actor !== null) {
      const [before, after] = [presentCustomer(current), presentCustomer(updated)]
      const subject = `customer ${customerId}`
      await recordAudit(tx, { actor, action: 'customer.update', appId: app.id, subject, before, after })
    }
    return updated
  })
}

function changesOf(fields: z.infer<typeof UpdateCustomerInput>): Partial<Omit<Customer, 'id' | 'appId'>> {
  const { cc_emails, bcc_emails, locale } = fields
  return given({
    name: fields.name,
    email: fields.email,
    merchantCustomerId: fields.merchant_customer_id,
    ccEmails: cc_emails === null ? [] : cc_emails,
    bccEmails: bcc_emails === null ? [] : bcc_emails,
    locale: locale === null ? ('en' as const) : locale,
  })
}
