import { z } from 'zod'
import type { App } from '#apps/store.ts'
import type { EndUserToken } from '#apps/verify-identity-token.ts'
import { command } from '#commands/command.ts'
import type { Tx } from '#commands/transaction.ts'
import { AppError, invalidField } from '#shared/errors.ts'
import { CreateCustomerInput, newCustomerOf } from './create-customer.ts'
import { requiredFields } from './customer-fields.ts'
import { presentCustomer } from './present.ts'
import { insertOwnCustomer, listOwnSlots, type Customer } from './store.ts'

/** One for each customer that the client of an end user can create. */
const SLOTS = [1, 2, 3, 4, 5]

/** SDKs send null or an empty list for a list that was not set. */
const noAddresses = z
  .array(z.unknown())
  .max(0, "may not be set by an end user's client")
  .nullish()
  .transform(() => null)

/** As for a seller's server, without what could be used to send mails to strangers. */
const CreateOwnCustomerInput = CreateCustomerInput.extend({
  name: requiredFields.name.refine((name) => !/:\/\/|www\./i.test(name), 'must not contain a web address'),
  cc_emails: noAddresses,
  bcc_emails: noAddresses,
})

/**
 * Creates a customer that belongs to the end user whose client calls (R12). If the token has a verified address, `email`
 * must equal it. Throws `invalid_request`, also for a sixth customer.
 */
export const createOwnCustomer = ({ sub, verifiedEmail }: EndUserToken) =>
  command({
    name: 'customer.create',
    input: CreateOwnCustomerInput,
    async run(tx, fields, { app }: { readonly app: App }) {
      if (verifiedEmail !== null && lowerCase(fields.email) !== lowerCase(verifiedEmail))
        throw invalidField('email', 'must be the verified address of the identity token')
      const row = { ...newCustomerOf(app, fields, tx.now), emailVerified: verifiedEmail !== null }
      const customer = await insertInSlot(tx, row, sub)
      await tx.audit({ appId: app.id, subject: `customer ${customer.id}`, after: presentCustomer(customer) })
      return customer
    },
  })

type OwnCustomer = Parameters<typeof insertOwnCustomer>[1]

async function insertInSlot(tx: Tx, row: OwnCustomer, endUser: string): Promise<Customer> {
  const taken = await listOwnSlots(tx, row.appId, endUser)
  for (const slot of SLOTS) {
    const customer = taken.has(slot) ? null : await insertOwnCustomer(tx, row, endUser, slot)
    if (customer) return customer
  }
  throw new AppError('invalid_request', `this end user has ${SLOTS.length} customers already: use one of them`)
}

/** Only ASCII letters: some other letters have an ASCII letter as their lower case. */
function lowerCase(address: string): string {
  return address.replace(/[A-Z]+/g, (letters) => letters.toLowerCase())
}
