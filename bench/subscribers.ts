import { customers, findCustomer } from '#customers/store.ts'
import { parseId } from '#shared/ids.ts'
import { DAY_MS, addMs } from '#shared/time.ts'
import { addSubscriptions, copyRow, firstCopy, type Shop } from './shop.ts'

/** Subscriptions of as many customers, none of them due. */
export async function addSubscribers(shop: Shop, count: number): Promise<void> {
  const { ctx, app } = shop
  const first = firstCopy(shop)
  const customer = await findCustomer(ctx.db, app.app.id, parseId('cus', shop.customer) ?? 0)
  if (!customer) throw new Error('the shop has no customer')
  const named = (number: number) => ({ id: first + number, email: `customer-${number}@example.com` })
  await copyRow(ctx.db, customers, customer, count, named)
  await addSubscriptions(shop, count, (number) => ({ customerId: first + number }))
  // A sandbox app may not send so many in a day.
  await ctx.db.query('UPDATE apps SET is_sandbox = 0')
}

/** The periods of these end in two days, and began long ago. */
export async function makeDue(shop: Shop, from: number, count: number): Promise<void> {
  const { ctx } = shop
  const now = ctx.clock.now()
  const first = firstCopy(shop) + from
  await ctx.db.run('UPDATE subscriptions SET period_start = ?, current_period_end = ? WHERE id >= ? AND id < ?', [
    addMs(now, -20 * DAY_MS),
    addMs(now, 2 * DAY_MS),
    first,
    first + count,
  ])
}
