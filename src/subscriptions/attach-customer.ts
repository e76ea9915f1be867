import { z } from 'zod'
import type { App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { requireCustomer } from '#customers/require-customer.ts'
import { recordAudit } from '#commands/audit.ts'
import { inTransaction } from '#commands/transaction.ts'
import { formatId } from '#shared/ids.ts'
import { validate } from '#shared/validate.ts'
import { viewSubscription, type SubscriptionView } from './present.ts'
import { recordChange } from './record-change.ts'
import { getSubscription, lockExistingEndUser } from './store.ts'

export const AttachCustomerInput = z.strictObject({ customer_id: z.string() })

/**
 * Attaches a customer, whom reminders go to from then on. Throws `not_found`, and `invalid_request` where the customer is not the
 * app's, or not the end user's whose client asks (`endUser`). `actor` is an operator's login name, null for the API.
 */
export async function attachCustomer(
  ctx: Context,
  app: App,
  externalRef: string,
  input: unknown,
  actor: string | null = null,
  endUser: string | null = null,
): Promise<SubscriptionView> {
  const { customer_id } = validate(AttachCustomerInput, input)
  return inTransaction(ctx, async (tx) => {
    await lockExistingEndUser(tx, app.id, externalRef)
    const current = await getSubscription(tx, app.id, externalRef)
    const customer = await requireCustomer(tx, app.id, customer_id, endUser)
    const saved = await recordChange(tx, app, current, { customerId: customer.id })
    if (actor !== null) {
      await recordAudit(tx, {
        actor,
        action: 'subscription.attach-customer',
        appId: app.id,
        subject: `subscription ${saved.id}`,
        before: { customer_id: current.customerId === null ? null : formatId('cus', current.customerId) },
        after: { customer_id },
      })
    }
    return viewSubscription(tx, saved)
  })
}
