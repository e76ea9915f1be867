import { z } from 'zod'
import type { App } from '#apps/store.ts'
import { command } from '#commands/command.ts'
import { requireCustomer } from '#customers/require-customer.ts'
import { formatIdOrNull } from '#shared/ids.ts'
import { recordChange } from './record-change.ts'
import { getPlanAndCustomer, getSubscription, lockExistingEndUser } from './store.ts'

export const AttachCustomerInput = z
  .strictObject({ customer_id: z.string().describe('A customer of the app, `cus_1`.') })
  .meta({ examples: [{ customer_id: 'cus_1' }] })

interface Scope {
  readonly app: App
  readonly externalRef: string
  /** The `sub` of the end user whose client asks; null for all others. */
  readonly endUser: string | null
}

/**
 * Attaches the customer who gets reminders from then on. Throws `not_found`, and `invalid_request` on `customer_id` for a customer of
 * another app, or, if a client asks, of another end user.
 */
export const attachCustomer = command({
  name: 'subscription.attach-customer',
  input: AttachCustomerInput,
  async run(tx, { customer_id }, { app, externalRef, endUser }: Scope) {
    await lockExistingEndUser(tx, app.id, externalRef)
    const current = await getSubscription(tx, app.id, externalRef)
    const customer = await requireCustomer(tx, app.id, customer_id, endUser)
    const set = { customerId: customer.id }
    const planAndCustomer = await getPlanAndCustomer(tx, { ...current, ...set })
    const view = await recordChange(tx, app, { before: current, set, line: null, planAndCustomer })
    await tx.audit({
      appId: app.id,
      subject: `subscription ${current.id}`,
      before: { customer_id: formatIdOrNull('cus', current.customerId) },
      after: { customer_id },
    })
    return view
  },
})
