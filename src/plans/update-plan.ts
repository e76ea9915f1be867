import type { App } from '#apps/store.ts'
import { command } from '#commands/command.ts'
import { noFieldsLeft } from '#shared/no-fields-left.ts'
import { given, patchOf } from '#shared/patch.ts'
import { longText, name } from '#shared/validate.ts'
import { auditedPlan } from './present.ts'
import { saleStatus } from './sale-status.ts'
import { getPlan, lockPlan, updatePlanRow, type Plan } from './store.ts'

export const UpdatePlanInput = patchOf({
  name: name(191).optional(),
  description: longText(5000).nullish().describe('Null clears it.'),
  status: saleStatus.optional(),
}).meta({ examples: [{ name: 'Premium Plus', description: 'All features, five devices.' }] })

/**
 * Changes the name or description of a plan, archives or restores it. Archiving takes all its prices off sale; existing subscriptions
 * keep renewing. Throws `not_found`.
 */
export const updatePlan = command({
  name: 'plan.update',
  input: UpdatePlanInput,
  async run(tx, { name, description, status, ...others }, scope: { readonly app: App; readonly planId: number }) {
    noFieldsLeft(others)
    const { app, planId } = scope
    const current = await lockPlan(tx, app.id, planId)
    await updatePlanRow(tx, planId, given<Plan>({ name, description, status }))
    const updated = await getPlan(tx, app.id, planId)
    const [before, after] = [auditedPlan(current), auditedPlan(updated)]
    await tx.audit({ appId: app.id, subject: `plan ${planId}`, before, after })
    return updated
  },
})
