import { z } from 'zod'
import type { App } from '#apps/store.ts'
import { command } from '#commands/command.ts'
import { noFieldsLeft } from '#shared/no-fields-left.ts'
import type { RealTime } from '#shared/time.ts'
import { optionalFields, requiredFields } from './customer-fields.ts'
import { presentCustomer } from './present.ts'
import { getCustomer, insertCustomer, type NewCustomer } from './store.ts'

export const CreateCustomerInput = z
  .strictObject({ ...requiredFields, ...optionalFields })
  .meta({ examples: [{ name: 'An Nguyen', email: 'an@example.com', merchant_customer_id: 'user-42', locale: 'vi' }] })

/** Creates a customer, who gets the reminders of subscriptions. Neither e-mail address nor merchant id has to be unique. */
export const createCustomer = command({
  name: 'customer.create',
  input: CreateCustomerInput,
  async run(tx, fields, { app }: { readonly app: App }) {
    const customer = await getCustomer(tx, app.id, await insertCustomer(tx, newCustomerOf(app, fields, tx.now)))
    await tx.audit({ appId: app.id, subject: `customer ${customer.id}`, after: presentCustomer(customer) })
    return customer
  },
})

/** The row of a new customer. */
export function newCustomerOf(app: App, fields: z.infer<typeof CreateCustomerInput>, now: RealTime): NewCustomer {
  const { name, email, merchant_customer_id, cc_emails, bcc_emails, locale, ...others } = fields
  noFieldsLeft(others)
  return {
    appId: app.id,
    name,
    email,
    merchantCustomerId: merchant_customer_id ?? null,
    ccEmails: cc_emails ?? [],
    bccEmails: bcc_emails ?? [],
    locale: locale ?? 'en',
    createdAt: now,
    updatedAt: now,
  }
}
