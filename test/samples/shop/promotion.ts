// promotion.ts: a checkout at a discount
import { ApiError } from 'paygate-client'
import { paygate } from './paygate.ts'

const [user = '', promotion_code = ''] = process.argv.slice(2)
const plans = await paygate.plans.list({ status: 'active' })
const plan = plans.find(({ code }) => code === 'premium')
const price = plan?.prices.find(({ interval_unit }) => interval_unit === 'month')

try {
  const checkout = await paygate.checkoutSessions.create({
    mode: 'subscription',
    external_ref: user,
    price_id: price?.id ?? '',
    promotion_code,
    success_url: 'https://shop.example.com/thanks',
    cancel_url: 'https://shop.example.com/plans',
  })
  console.log(checkout.discount)
} catch (error) {
  if (!(error instanceof ApiError) || error.code !== 'promotion_not_valid') throw error
  console.log(error.message)
}
