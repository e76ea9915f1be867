import type { App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { recordAudit } from '#commands/audit.ts'
import { inTransaction } from '#commands/transaction.ts'
import { notFound } from '#shared/errors.ts'
import { given, patchOf } from '#shared/patch.ts'
import { text, validate } from '#shared/validate.ts'
import { presentPrice } from './present.ts'
import { saleStatus } from './sale-status.ts'
import { getPlan, touchPlan, updatePriceRow, type PlanWithPrices, type Price } from './store.ts'

export const UpdatePriceInput = patchOf({
  /** Null takes the label away. */
  name: text(191).nullish(),
  status: saleStatus.optional(),
})

/**
 * Renames, archives or restores a price: amount, currency and interval never change (specification 2). An archived price keeps
 * renewing the subscriptions that run on it. Throws `invalid_request`, and `not_found` where the plan has no such price.
 * `actor` is an operator's login name, null for the API.
 */
export async function updatePrice(
  ctx: Context,
  app: App,
  planId: number,
  priceId: number,
  input: unknown,
  actor: string | null = null,
): Promise<PlanWithPrices> {
  const changes = given(validate(UpdatePriceInput, input))
  return inTransaction(ctx, async (tx) => {
    const current = priceOf(await getPlan(tx, app.id, planId), priceId)
    await updatePriceRow(tx, priceId, changes)
    await touchPlan(tx, planId)
    const updated = await getPlan(tx, app.id, planId)
    if (actor !== null) {
      const [before, after] = [presentPrice(current), presentPrice(priceOf(updated, priceId))]
      await recordAudit(tx, {
        actor,
        action: 'price.update',
        appId: app.id,
        subject: `price ${priceId}`,
        before,
        after,
      })
    }
    return updated
  })
}

function priceOf(plan: PlanWithPrices, priceId: number): Price {
  const price = plan.prices.find(({ id }) => id === priceId)
  if (!price) throw notFound('price')
  return price
}
