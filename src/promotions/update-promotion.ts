import type { App } from '#apps/store.ts'
import { command } from '#commands/command.ts'
import { saleStatus } from '#plans/sale-status.ts'
import { noFieldsLeft } from '#shared/no-fields-left.ts'
import { given, patchOf } from '#shared/patch.ts'
import { maxUses, validUntil } from './create-promotion.ts'
import { presentPromotion } from './present.ts'
import { getPromotion, lockPromotion, updatePromotionRow, type Promotion } from './store.ts'

export const UpdatePromotionInput = patchOf({
  status: saleStatus.optional().describe('An archived promotion cannot be used until it is restored.'),
  valid_until: validUntil,
  max_uses: maxUses,
}).meta({ examples: [{ valid_until: '2027-03-31 16:59:59', max_uses: 1000 }] })

/**
 * Archives or restores a promotion, or changes its end or how many may use it. Open checkouts and renewals keep what they were given.
 * Throws `not_found`.
 */
export const updatePromotion = command({
  name: 'promotion.update',
  input: UpdatePromotionInput,
  async run(
    tx,
    { status, valid_until, max_uses, ...others },
    { app, promotionId }: { readonly app: App; readonly promotionId: number },
  ) {
    noFieldsLeft(others)
    await lockPromotion(tx, promotionId)
    const before = await getPromotion(tx, app.id, promotionId)
    await updatePromotionRow(
      tx,
      promotionId,
      given<Pick<Promotion, 'status' | 'validUntil' | 'maxUses'>>({
        status,
        validUntil: valid_until,
        maxUses: max_uses,
      }),
    )
    const after = await getPromotion(tx, app.id, promotionId)
    const shown = { before: presentPromotion(before), after: presentPromotion(after) }
    await tx.audit({ appId: app.id, subject: `promotion ${promotionId}`, ...shown })
    return after
  },
})
