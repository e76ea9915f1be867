import type Stripe from 'stripe'
import { sha256Hex } from '#shared/crypto.ts'
import { addMs, HOUR_MS, MINUTE_MS, unixSeconds, type RealTime } from '#shared/time.ts'
import type { PaymentRequest } from '#providers/provider.ts'
import type { ProviderSession } from '#providers/store.ts'
import { englishMoney } from '#shared/money.ts'
import { toStripeAmount } from './amount.ts'

const MIN_DURATION_MS = 30 * MINUTE_MS
const MAX_DURATION_MS = 24 * HOUR_MS
/** Stripe measures by its own clock, from when the request arrives. */
const MARGIN_MS = 2 * MINUTE_MS

/** The end of a Checkout Session opened now for a checkout that ends at `checkoutEnd`: Stripe accepts 30 minutes to 24 hours. */
export function sessionEnd(checkoutEnd: RealTime, now: RealTime): RealTime {
  const earliest = addMs(now, MIN_DURATION_MS + MARGIN_MS)
  const latest = addMs(now, MAX_DURATION_MS - MARGIN_MS)
  if (checkoutEnd < earliest) return earliest
  return checkoutEnd > latest ? latest : checkoutEnd
}

/** The Checkout Session to ask Stripe for. */
export function sessionParams(request: PaymentRequest, session: ProviderSession): Stripe.Checkout.SessionCreateParams {
  const unitAmount = toStripeAmount(session.amount, session.currency)
  if (unitAmount === null) throw new Error(`${englishMoney(session.amount, session.currency)} has no amount at Stripe`)
  const metadata = { transaction_id: String(session.transactionId), app_id: String(session.appId) }
  return {
    mode: 'payment',
    submit_type: 'pay',
    client_reference_id: String(session.transactionId),
    line_items: [
      {
        quantity: 1,
        price_data: {
          currency: session.currency.toLowerCase(),
          unit_amount: unitAmount,
          product_data: { name: request.title },
        },
      },
    ],
    // Without conversion into the payer's currency, so that exactly the amount asked is charged.
    adaptive_pricing: { enabled: false },
    metadata,
    payment_intent_data: { metadata },
    success_url: request.returnUrl,
    cancel_url: request.cancelUrl,
    expires_at: unixSeconds(session.expiresAt),
    locale: request.locale,
    ...(request.customerEmail === null ? {} : { customer_email: request.customerEmail }),
  }
}

/**
 * The idempotency key: transaction, session row and a hash of the parameters. A repeated request gets the session of the first; a changed
 * request gets a new session. Stripe refuses a key that is reused with other parameters.
 */
export function sessionKey(session: ProviderSession, params: Stripe.Checkout.SessionCreateParams): string {
  return `paygate-${session.transactionId}-${session.id}-${sha256Hex(JSON.stringify(params)).slice(0, 16)}`
}
