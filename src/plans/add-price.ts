import type { App } from '#apps/store.ts'
import { command } from '#commands/command.ts'
import { presentPlan } from './present.ts'
import { PriceInput, priceRow } from './price-input.ts'
import { getPlan, insertPrices, lockPlan, touchPlan } from './store.ts'

/** Puts one more price of a plan on sale; the others stay. Throws `not_found`. */
export const addPrice = command({
  name: 'price.add',
  input: PriceInput,
  async run(tx, price, { app, planId }: { readonly app: App; readonly planId: number }) {
    const current = await lockPlan(tx, app.id, planId)
    await insertPrices(tx, [priceRow(planId, price, tx.now)])
    await touchPlan(tx, planId)
    const updated = await getPlan(tx, app.id, planId)
    const [before, after] = [presentPlan(current, { all: true }), presentPlan(updated, { all: true })]
    await tx.audit({ appId: app.id, subject: `plan ${planId}`, before, after })
    return updated
  },
})
