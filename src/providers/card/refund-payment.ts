import type Stripe from 'stripe'
import type { Context } from '#context.ts'
import { openCredentials } from '#providers/credentials.ts'
import type { RefundablePayment } from '#providers/provider.ts'
import { AppError } from '#shared/errors.ts'
import { HOUR_MS } from '#shared/time.ts'
import { callStripe, stripeClient, stripeFault } from './client.ts'
import { CardCredentials } from './credentials.ts'

/**
 * Refunds a card payment in full through Stripe and returns the refund's id. Repeating it is safe: under the same key Stripe gives the
 * same refund, and one that was made before is found. Throws `provider_error` where Stripe cannot be reached or refuses.
 */
export async function refundCardPayment(
  ctx: Context,
  payment: RefundablePayment,
  idempotencyKey: string,
): Promise<{ refundReference: string }> {
  if (payment.provider !== 'stripe') throw new AppError('invalid_request', 'this is not a card payment')
  const credentials = await openCredentials(ctx, 'card', CardCredentials, payment.appId)
  if (!credentials) throw new AppError('provider_error', 'the app has no card credentials any more')
  const stripe = await stripeClient(ctx.config, credentials.secretKey)
  try {
    return { refundReference: await refund(ctx, stripe, payment, idempotencyKey) }
  } catch (thrown) {
    if (thrown instanceof AppError) throw thrown
    const fault = stripeFault(thrown)
    if (fault.kind === 'unreachable') throw new AppError('provider_error', 'Stripe cannot be reached; please try again')
    throw new AppError('provider_error', `Stripe refused the refund (${fault.code ?? fault.type})`)
  }
}

async function refund(
  ctx: Context,
  stripe: Stripe,
  payment: RefundablePayment,
  idempotencyKey: string,
): Promise<string> {
  const session = await callStripe(ctx, 'checkout.sessions.retrieve', () =>
    stripe.checkout.sessions.retrieve(payment.reference),
  )
  const intent = typeof session.payment_intent === 'string' ? session.payment_intent : session.payment_intent?.id
  if (intent === undefined) throw new AppError('provider_error', 'Stripe names no payment of this Checkout Session')
  const metadata = { transaction_id: String(payment.transactionId), app_id: String(payment.appId) }
  const params = { payment_intent: intent, metadata }
  // Stripe repeats a failure of its own for a day under the same key. No payment is refunded in full twice, whatever the key, so that
  // each hour may have one of its own.
  const hour = Math.floor(ctx.clock.now().getTime() / HOUR_MS)
  const options = { idempotencyKey: `${idempotencyKey}-${intent}-${hour}` }
  try {
    const made = await callStripe(ctx, 'refunds.create', () => stripe.refunds.create(params, options))
    return made.id
  } catch (thrown) {
    if (stripeFault(thrown).code !== 'charge_already_refunded') throw thrown
    return refundMadeBefore(ctx, stripe, intent)
  }
}

async function refundMadeBefore(ctx: Context, stripe: Stripe, intent: string): Promise<string> {
  const refunds = await callStripe(ctx, 'refunds.list', () => stripe.refunds.list({ payment_intent: intent, limit: 1 }))
  const last = refunds.data[0]
  if (!last) throw new AppError('provider_error', 'Stripe says that the payment was refunded and shows no refund')
  return last.id
}
