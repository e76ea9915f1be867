// checkout.ts
import type { Customer } from 'paygate-client'
import { paygate } from './paygate.ts'
import { save, state } from './store.ts'

const PAGES = { success_url: 'https://shop.example.com/thanks', cancel_url: 'https://shop.example.com/plans' }

/** Opens a checkout for the plan; returns the page where the user pays. */
export async function openCheckout(user: string, email: string, unit: string): Promise<string> {
  const plans = await paygate.plans.list({ status: 'active' })
  const plan = plans.find(({ code }) => code === 'premium')
  const price = plan?.prices.find(({ interval_unit }) => interval_unit === unit)
  if (!price) throw new Error(`nothing is sold by the ${unit}`)
  const { id: customer_id } = await customerOf(user, email)
  const checkout = await paygate.checkoutSessions.create({
    mode: 'subscription',
    external_ref: user,
    price_id: price.id,
    customer_id,
    ...PAGES,
  })
  return checkout.checkout_url
}

/** Finds or creates a user's customer. Of two requests at the same time, the second gets what the first created. */
async function customerOf(user: string, email: string): Promise<Customer> {
  const { data } = await paygate.customers.list({ merchant_customer_id: user, limit: 1 })
  const idempotencyKey = `customer-${encodeURIComponent(user)}`
  return data[0] ?? paygate.customers.create({ name: user, email, merchant_customer_id: user }, { idempotencyKey })
}

/** Opens a checkout for a pack of stickers; returns the page where the user pays. */
export async function openPurchase(user: string): Promise<string> {
  const order = `A-${1001 + Object.keys(state.orders).length}`
  state.orders[order] = { status: 'open', transaction: null }
  // Before the call: after a crash, no other order gets its number.
  save()
  const checkout = await paygate.checkoutSessions.create(
    {
      mode: 'payment',
      external_ref: user,
      plan_ref: 'stickers',
      plan_name: 'A pack of stickers',
      amount: 20000,
      currency: 'VND',
      metadata: { order },
      ...PAGES,
    },
    { idempotencyKey: `order-${order}` },
  )
  state.orders[order] = { status: 'open', transaction: checkout.transaction_id }
  save()
  return checkout.checkout_url
}
