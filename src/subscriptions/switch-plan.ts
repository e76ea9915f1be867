import { z } from 'zod'
import type { App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { recordAudit } from '#commands/audit.ts'
import { inTransaction } from '#commands/transaction.ts'
import { findPriceOnSale } from '#plans/find-price-on-sale.ts'
import { AppError } from '#shared/errors.ts'
import { formatId } from '#shared/ids.ts'
import { validate } from '#shared/validate.ts'
import { writeDecision } from './apply-payment.ts'
import { isLifetime } from './lifecycle.ts'
import { viewSubscription, type SubscriptionView } from './present.ts'
import { recordChange } from './record-change.ts'
import { getSubscription, lockExistingEndUser } from './store.ts'

export const SwitchPlanInput = z.strictObject({ price_id: z.string() })

/**
 * Moves a subscription to a price on sale of any plan. The period stays; reminders, link and amount follow at the next renewal.
 * Throws `not_found`, `price_not_found`, `already_lifetime`. `actor` is an operator's login name, null for the API.
 */
export async function switchPlan(
  ctx: Context,
  app: App,
  externalRef: string,
  input: unknown,
  actor: string | null = null,
): Promise<SubscriptionView> {
  const { price_id } = validate(SwitchPlanInput, input)
  return inTransaction(ctx, async (tx) => {
    await lockExistingEndUser(tx, app.id, externalRef)
    const current = await getSubscription(tx, app.id, externalRef)
    const { price, plan } = await findPriceOnSale(tx, app.id, price_id)
    if (isLifetime(current)) throw new AppError('already_lifetime', 'this end user owns a lifetime subscription')
    const saved = await recordChange(tx, app, current, { planId: plan.id, priceId: price.id })
    await writeDecision(tx, app, 'switched', saved, current)
    if (actor !== null) {
      await recordAudit(tx, {
        actor,
        action: 'subscription.switch-plan',
        appId: app.id,
        subject: `subscription ${saved.id}`,
        before: { price_id: formatId('price', current.priceId) },
        after: { price_id },
      })
    }
    return viewSubscription(tx, saved)
  })
}
