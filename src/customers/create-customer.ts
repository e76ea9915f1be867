import { z } from 'zod'
import type { App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { recordAudit } from '#commands/audit.ts'
import { inTransaction } from '#commands/transaction.ts'
import { validate } from '#shared/validate.ts'
import type { RealTime } from '#shared/time.ts'
import { optionalFields, requiredFields } from './customer-fields.ts'
import { presentCustomer } from './present.ts'
import { getCustomer, insertCustomer, type Customer, type NewCustomer } from './store.ts'

export const CreateCustomerInput = z.strictObject({ ...requiredFields, ...optionalFields })

/** Registers whom an app's reminders go to; neither e-mail nor merchant id need be new. Throws `invalid_request`. */
export async function createCustomer(
  ctx: Context,
  app: App,
  input: unknown,
  actor: string | null = null,
): Promise<Customer> {
  const fields = validate(CreateCustomerInput, input)
  return inTransaction(ctx, async (tx) => {
    const customerId = await insertCustomer(tx, newCustomerOf(app, fields, tx.now))
    const customer = await getCustomer(tx, app.id, customerId)
    if (actor !== null) {
      const [subject, after] = [`customer ${customerId}`, presentCustomer(customer)]
      await recordAudit(tx, { actor, action: 'customer.create', appId: app.id, subject, after })
    }
    return customer
  })
}

/** The row of a new customer. */
export function newCustomerOf(app: App, fields: z.infer<typeof CreateCustomerInput>, now: RealTime): NewCustomer {
  return {
    appId: app.id,
    name: fields.name,
    email: fields.email,
    merchantCustomerId: fields.merchant_customer_id ?? null,
    ccEmails: fields.cc_emails ?? [],
    bccEmails: fields.bcc_emails ?? [],
    locale: fields.locale ?? 'en',
    createdAt: now,
    updatedAt: now,
  }
}
