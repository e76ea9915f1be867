import type Stripe from 'stripe'
import type { Context } from '#context.ts'
import { callProvider, providerError } from '#providers/call-provider.ts'
import { openSession, type OpenedSession } from '#providers/open-session.ts'
import { abandonSession } from '#providers/session-status.ts'
import { CLOSED, defineProvider, type PaymentRequest, type Sessions } from '#providers/provider.ts'
import { httpsSources } from '#providers/redirect-sources.ts'
import type { ProviderSession } from '#providers/store.ts'
import { fromUnixSeconds, type RealTime } from '#shared/time.ts'
import { cardAccounts, type CardCredentials } from './accounts.ts'
import { isChargeable } from './amount.ts'
import { isUndecided, stripeApi, stripeClient, stripeFailureOf } from './client.ts'
import { confirmSession } from './confirm-session.ts'
import { cardCredentials } from './credentials.ts'
import { noteRefunds } from './note-refunds.ts'
import { receiveCardEvent } from './receive-event.ts'
import { cardRefunds } from './refund-payment.ts'
import { CardSession, isPaid } from './session-facts.ts'
import { sessionEnd, sessionKey, sessionParams } from './session-params.ts'

/** Stripe's events contain whole objects with their lists. */
const NOTIFICATION_BYTES = 256 * 1024

/** Open sessions at Stripe. */
const sessions: Sessions = {
  async pollStatus(ctx, session) {
    const { reference, providerAccountId, expiresAt, amount } = session
    if (reference === null) return ctx.clock.now() > expiresAt ? CLOSED : { status: 'open', asks: amount }
    const { credentials } = await cardAccounts.get(ctx, providerAccountId)
    const found = await retrieveSession(ctx, credentials, reference)
    if (!found) return CLOSED
    const facts = CardSession.parse(found)
    if (isPaid(facts)) {
      const report = { eventId: null, eventType: 'lookup', paidAt: paymentTimeOf(ctx, session, found) }
      const { status } = await confirmSession(ctx, facts, session, report)
      return status === 'refused' ? CLOSED : { status: 'paid' }
    }
    if (found.status === 'complete') return hasFailed(found) ? CLOSED : { status: 'processing' }
    return found.status === 'expired' ? CLOSED : { status: 'open', asks: amount }
  },

  async close(ctx, { reference, providerAccountId }) {
    if (reference === null) return
    const { credentials } = await cardAccounts.get(ctx, providerAccountId)
    const stripe = await stripeClient(ctx.config, credentials.secretKey)
    try {
      await callProvider(ctx, stripeApi, 'checkout.sessions.expire', () => stripe.checkout.sessions.expire(reference))
    } catch (thrown) {
      throw providerError(stripeApi, thrown)
    }
  },
}

/** Card payments through Stripe Checkout. */
export const card = defineProvider({
  method: 'card',
  code: 'stripe',
  texts: {
    en: { name: 'International card', hint: 'Visa, Mastercard, JCB', pay: 'Pay by international card' },
    vi: { name: 'Thẻ quốc tế', hint: 'Visa, Mastercard, JCB', pay: 'Thanh toán bằng thẻ quốc tế' },
  },
  credentials: cardCredentials,
  notifications: {
    path: '/api/v1/webhooks/card-provider',
    maxBytes: NOTIFICATION_BYTES,
    receive: (ctx, { headers, body }) => receiveCardEvent(ctx, { body, signature: headers['stripe-signature'] }),
  },
  redirectSources: (config) => httpsSources(config, config.stripeApiBase),
  accepts: isChargeable,
  sessions,
  refunds: cardRefunds,
  noteRefunds,

  async open(ctx, request) {
    const { id: providerAccountId, credentials } = await cardAccounts.requireCurrent(ctx, request.app.id)
    return openSession(ctx, sessions, request, {
      provider: 'stripe',
      providerAccountId,
      expiresAt: sessionEnd(request.expiresAt, ctx.clock.now()),
      create: (session) => createSession(ctx, credentials, request, session),
    })
  },
})

/** Whether the payment of a completed session failed: its intent needs another means of payment, or was canceled. */
function hasFailed({ payment_intent: intent }: Stripe.Checkout.Session): boolean {
  return typeof intent === 'object' && (intent?.status === 'requires_payment_method' || intent?.status === 'canceled')
}

async function createSession(
  ctx: Context,
  credentials: CardCredentials,
  request: PaymentRequest,
  session: ProviderSession,
): Promise<OpenedSession | null> {
  const stripe = await stripeClient(ctx.config, credentials.secretKey)
  const params = sessionParams(request, session)
  const options = { idempotencyKey: sessionKey(session, params) }
  try {
    const { id: reference, url } = await callProvider(ctx, stripeApi, 'checkout.sessions.create', () =>
      stripe.checkout.sessions.create(params, options),
    )
    return url ? { reference, url } : null
  } catch (thrown) {
    const failure = stripeFailureOf(thrown)
    // Stripe checks addresses more strictly than mail servers do. The payer can type another one on its page.
    if (failure.param === 'customer_email') {
      return createSession(ctx, credentials, { ...request, customerEmail: null }, session)
    }
    // Stripe repeats a refusal under the same key, so the next try needs a new key.
    if (failure.kind === 'refused' && !isUndecided(failure)) await abandonSession(ctx, session)
    throw providerError(stripeApi, thrown)
  }
}

/** The session at Stripe now; null if there is none. */
async function retrieveSession(
  ctx: Context,
  credentials: CardCredentials,
  reference: string,
): Promise<Stripe.Checkout.Session | null> {
  const stripe = await stripeClient(ctx.config, credentials.secretKey)
  const expand = { expand: ['payment_intent.latest_charge'] }
  try {
    return await callProvider(ctx, stripeApi, 'checkout.sessions.retrieve', () =>
      stripe.checkout.sessions.retrieve(reference, expand),
    )
  } catch (thrown) {
    const failure = stripeFailureOf(thrown)
    if (failure.code === 'resource_missing') return null
    throw providerError(stripeApi, thrown)
  }
}

/**
 * When the card was charged. The charge of a debit is created when the debit begins, days before it is paid, so a debit counts from now.
 */
function paymentTimeOf(
  ctx: Context,
  stored: ProviderSession,
  { payment_intent: intent }: Stripe.Checkout.Session,
): RealTime {
  const charge = intent && typeof intent === 'object' ? intent.latest_charge : null
  const isCharged = charge && typeof charge === 'object' && stored.status !== 'processing'
  return isCharged ? fromUnixSeconds(charge.created) : ctx.clock.now()
}
