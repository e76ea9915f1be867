import { z } from 'zod'
import type { App } from '#apps/store.ts'
import { command } from '#commands/command.ts'
import { findPriceOnSale } from '#plans/find-price-on-sale.ts'
import { AppError } from '#shared/errors.ts'
import { formatId } from '#shared/ids.ts'
import { unpaidLine } from './unpaid-line.ts'
import { isLifetime } from './lifecycle.ts'
import { recordChange } from './record-change.ts'
import { getPlanAndCustomer, getSubscription, lockExistingEndUser } from './store.ts'

export const SwitchPlanInput = z
  .strictObject({ price_id: z.string().describe('A price on sale, `price_1`.') })
  .meta({ examples: [{ price_id: 'price_1' }] })

/**
 * Moves a subscription to a price on sale of any plan. The period stays; the next renewal costs the new price, and a
 * discount on every period ends with the plan.
 * Throws `not_found`, `price_not_found`, `already_lifetime`.
 */
export const switchPlan = command({
  name: 'subscription.switch-plan',
  input: SwitchPlanInput,
  async run(tx, { price_id }, { app, externalRef }: { readonly app: App; readonly externalRef: string }) {
    await lockExistingEndUser(tx, app.id, externalRef)
    const current = await getSubscription(tx, app.id, externalRef)
    const { price, plan } = await findPriceOnSale(tx, app.id, price_id)
    if (isLifetime(current)) throw new AppError('already_lifetime', 'this end user owns a lifetime subscription')
    // A discount on every period belongs to the plan that it was given for (R357).
    const ends = plan.id === current.planId ? {} : { promotionCode: null }
    const set = { planId: plan.id, priceId: price.id, ...ends }
    const after = { ...current, ...set }
    const line = await unpaidLine(tx, app, 'switched', after)
    const view = await recordChange(tx, app, {
      before: current,
      set,
      line,
      planAndCustomer: await getPlanAndCustomer(tx, after),
    })
    await tx.audit({
      appId: app.id,
      subject: `subscription ${current.id}`,
      before: { price_id: formatId('price', current.priceId) },
      after: { price_id },
    })
    return view
  },
})
