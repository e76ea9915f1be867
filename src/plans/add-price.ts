import type { App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { recordAudit } from '#commands/audit.ts'
import { inTransaction } from '#commands/transaction.ts'
import { validate } from '#shared/validate.ts'
import { presentPlan } from './present.ts'
import { PriceInput, priceRow } from './price-input.ts'
import { getPlan, insertPrices, touchPlan, type PlanWithPrices } from './store.ts'

/**
 * Puts one more price of a plan on sale; the others stay. Throws `invalid_request` and `not_found`.
 * `actor` is an operator's login name, null for the API.
 */
export async function addPrice(
  ctx: Context,
  app: App,
  planId: number,
  input: unknown,
  actor: string | null = null,
): Promise<PlanWithPrices> {
  const price = validate(PriceInput, input)
  return inTransaction(ctx, async (tx) => {
    const current = await getPlan(tx, app.id, planId)
    await insertPrices(tx, [priceRow(planId, price, tx.now)])
    await touchPlan(tx, planId)
    const updated = await getPlan(tx, app.id, planId)
    if (actor !== null) {
      const [before, after] = [presentPlan(current, { all: true }), presentPlan(updated, { all: true })]
      await recordAudit(tx, { actor, action: 'price.add', appId: app.id, subject: `plan ${planId}`, before, after })
    }
    return updated
  })
}
