import type { App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { planReminders, type NoMailReason, type PlannedReminder } from '#mails/reminders/plan-reminders.ts'
import { discounted } from '#promotions/discount.ts'
import { promotionKeyOf, listPromotionsOf } from '#promotions/store.ts'
import { sumBy, type Amounts } from './sales/figures.ts'
import { listRenewalPrices } from './sales/store.ts'

const DAYS = 30
const PAGE = 500
/** Their mail has gone out or will. */
const REMINDED: readonly (NoMailReason | null)[] = [null, 'already_sent', 'unconfirmed', 'daily_limit']

interface Renewal {
  readonly currency: string
  readonly amount: bigint
}

/**
 * What comes in the next 30 days if everybody renews who gets a reminder in them (R424): what each subscription's renewal costs now.
 * Of one app, or of those in `appIds`.
 */
export async function sumExpected(ctx: Context, app: App | null, appIds: readonly number[]): Promise<Amounts> {
  const planned = (await planReminders(ctx, app, DAYS)).filter(({ app_id: id }) => appIds.includes(id))
  const renewals: Renewal[] = []
  for (const [appId, refs] of remindedOf(planned))
    for (let from = 0; from < refs.length; from += PAGE)
      renewals.push(...(await renewalsOf(ctx, appId, refs.slice(from, from + PAGE))))
  return sumBy(renewals, ({ amount }) => amount)
}

/** Each subscription once, by app. */
function remindedOf(planned: readonly PlannedReminder[]): Map<number, readonly string[]> {
  const reminded = planned.filter(({ reason }) => REMINDED.includes(reason))
  const byApp = [...Map.groupBy(reminded, ({ app_id: id }) => id)]
  return new Map(byApp.map(([id, rows]) => [id, [...new Set(rows.map(({ external_ref: ref }) => ref))]]))
}

async function renewalsOf(ctx: Context, appId: number, externalRefs: readonly string[]): Promise<Renewal[]> {
  const prices = await listRenewalPrices(ctx.db, appId, externalRefs)
  const promotions = await listPromotionsOf(ctx.db, prices)
  return prices.map((price) => {
    const { amount } = discounted(promotions.get(promotionKeyOf(price)) ?? null, price)
    return { currency: price.currency, amount: BigInt(amount) }
  })
}
