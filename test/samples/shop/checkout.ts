// checkout.ts
import { paygate } from './paygate.ts'

/** Opens a checkout; returns the page where the user pays. */
export async function openCheckout(user: string, email: string, unit: string): Promise<string> {
  const [plan] = await paygate.plans.list({ status: 'active' })
  const price = plan?.prices.find(({ interval_unit }) => interval_unit === unit)
  if (!price) throw new Error(`nothing is sold by the ${unit}`)
  const known = await paygate.customers.list({ merchant_customer_id: user, limit: 1 })
  const customer = known.data[0] ?? (await paygate.customers.create({ name: user, email, merchant_customer_id: user }))
  const checkout = await paygate.checkoutSessions.create({
    mode: 'subscription',
    external_ref: user,
    price_id: price.id,
    customer_id: customer.id,
    success_url: 'https://shop.example.com/thanks',
    cancel_url: 'https://shop.example.com/plans',
  })
  return checkout.checkout_url
}
