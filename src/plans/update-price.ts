import type { App } from '#apps/store.ts'
import { command } from '#commands/command.ts'
import { notFound } from '#shared/errors.ts'
import { noFieldsLeft } from '#shared/no-fields-left.ts'
import { given, patchOf } from '#shared/patch.ts'
import { name } from '#shared/validate.ts'
import { presentPrice } from './present.ts'
import { saleStatus } from './sale-status.ts'
import { getPlan, lockPlan, touchPlan, updatePriceRow, type PlanWithPrices, type Price } from './store.ts'

export const UpdatePriceInput = patchOf({
  name: name(191).nullish().describe('Null removes the label.'),
  status: saleStatus.optional(),
}).meta({ examples: [{ status: 'archived' }] })

interface Scope {
  readonly app: App
  readonly planId: number
  readonly priceId: number
}

/**
 * Renames, archives or restores a price: amount, currency and interval never change (R41). Existing subscriptions keep
 * renewing at an archived price. Throws `not_found` if the plan has no such price.
 */
export const updatePrice = command({
  name: 'price.update',
  input: UpdatePriceInput,
  async run(tx, { name, status, ...others }, scope: Scope) {
    noFieldsLeft(others)
    const { app, planId, priceId } = scope
    const current = priceOf(await lockPlan(tx, app.id, planId), priceId)
    await updatePriceRow(tx, priceId, given<Price>({ name, status }))
    await touchPlan(tx, planId)
    const updated = await getPlan(tx, app.id, planId)
    const [before, after] = [presentPrice(current), presentPrice(priceOf(updated, priceId))]
    await tx.audit({ appId: app.id, subject: `price ${priceId}`, before, after })
    return updated
  },
})

function priceOf(plan: PlanWithPrices, priceId: number): Price {
  const price = plan.prices.find(({ id }) => id === priceId)
  if (!price) throw notFound('price')
  return price
}
