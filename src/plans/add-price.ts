import type { App } from '#apps/store.ts'
import { command } from '#commands/command.ts'
import { auditedPlan, presentPrice } from './present.ts'
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
    const known = new Set(current.prices.map(({ id }) => id))
    const added = updated.prices.filter(({ id }) => !known.has(id)).map(presentPrice)
    const [before, after] = [auditedPlan(current), { ...auditedPlan(updated), added }]
    await tx.audit({ appId: app.id, subject: `plan ${planId}`, before, after })
    return updated
  },
})
