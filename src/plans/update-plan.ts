import type { App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { recordAudit } from '#commands/audit.ts'
import { inTransaction } from '#commands/transaction.ts'
import { given, patchOf } from '#shared/patch.ts'
import { longText, text, validate } from '#shared/validate.ts'
import { presentPlan } from './present.ts'
import { saleStatus } from './sale-status.ts'
import { getPlan, updatePlanRow, type PlanWithPrices } from './store.ts'

export const UpdatePlanInput = patchOf({
  name: text(191).optional(),
  /** Null clears it. */
  description: longText(5000).nullish(),
  status: saleStatus.optional(),
})

/**
 * Renames, describes, archives or restores a plan. Archiving takes all its prices off sale; running subscriptions go on.
 * Throws `invalid_request` and `not_found`. `actor` is an operator's login name, null for the API.
 */
export async function updatePlan(
  ctx: Context,
  app: App,
  planId: number,
  input: unknown,
  actor: string | null = null,
): Promise<PlanWithPrices> {
  const changes = given(validate(UpdatePlanInput, input))
  return inTransaction(ctx, async (tx) => {
    const current = await getPlan(tx, app.id, planId)
    await updatePlanRow(tx, planId, changes)
    const updated = await getPlan(tx, app.id, planId)
    if (actor !== null) {
      const [before, after] = [presentPlan(current, { all: true }), presentPlan(updated, { all: true })]
      await recordAudit(tx, { actor, action: 'plan.update', appId: app.id, subject: `plan ${planId}`, before, after })
    }
    return updated
  })
}
