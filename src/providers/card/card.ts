import type Stripe from 'stripe'
import type { App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { abandonSession, beginSession, recordOpened } from '#providers/begin-session.ts'
import { openCredentials } from '#providers/credentials.ts'
import { defineProvider, type PaymentRequest } from '#providers/provider.ts'
import { httpsAnd } from '#providers/redirect-sources.ts'
import type { ProviderSession } from '#providers/store.ts'
import { AppError } from '#shared/errors.ts'
import { SECOND_MS, asRealTime, type RealTime } from '#shared/time.ts'
import { isChargeable } from './amount.ts'
import { callStripe, cardProviderError, stripeClient, stripeFault } from './client.ts'
import { confirmSession } from './confirm-session.ts'
import { CardCredentials, cardCredentials } from './credentials.ts'
import { noteRefunds } from './note-refunds.ts'
import { receiveCardEvent } from './receive-event.ts'
import { cardRefunds } from './refund-payment.ts'
import { CardSession, isPaid } from './session-facts.ts'
import { sessionEnd, sessionKey, sessionParams } from './session-params.ts'

/** Card payments through Stripe Checkout (contract 4, Card provider). */
export const card = defineProvider({
  method: 'card',
  code: 'stripe',
  texts: {
    en: { name: 'Card', hint: 'Visa, Mastercard and other cards', pay: 'Pay by card' },
    vi: { name: 'Thẻ', hint: 'Visa, Mastercard và thẻ khác', pay: 'Thanh toán bằng thẻ' },
  },
  credentials: cardCredentials,
  notifications: {
    path: '/api/v1/webhooks/card-provider',
    receive: (ctx, { headers, body }) => receiveCardEvent(ctx, { body, signature: headers['stripe-signature'] }),
  },
  redirectSources: (config) => httpsAnd(config, config.stripeApiBase),
  accepts: isChargeable,
  refunds: cardRefunds,
  noteRefunds,

  async open(ctx, request) {
    const credentials = await requireCredentials(ctx, request.app)
    const expiresAt = sessionEnd(request.expiresAt, ctx.clock.now())
    const session = await beginSession(ctx, request, { provider: 'stripe', expiresAt, reference: null })
    if (!session) return { redirectUrl: request.returnUrl }
    if (session.url !== null) return { redirectUrl: session.url }
    const created = await createSession(ctx, credentials, request, session)
    if (!created.url) throw new AppError('provider_error', 'the card provider gave no payment page; please try again')
    return { redirectUrl: await recordOpened(ctx, session, { reference: created.id, url: created.url }) }
  },

  async lookUp(ctx, app, session) {
    if (session.reference === null) return ctx.clock.now() > session.expiresAt ? 'closed' : 'open'
    const found = await retrieveSession(ctx, await requireCredentials(ctx, app), session.reference)
    if (!found) return 'closed'
    const facts = CardSession.parse(found)
    if (isPaid(facts)) {
      const report = { eventId: null, eventType: 'lookup', paidAt: paidAt(ctx, found) }
      return (await confirmSession(ctx, facts, session, report)) === 'refused' ? 'closed' : 'paid'
    }
    return found.status === 'expired' ? 'closed' : 'open'
  },

  async close(ctx, app, session) {
    const { reference } = session
    if (reference === null) return
    const stripe = await stripeClient(ctx.config, (await requireCredentials(ctx, app)).secretKey)
    try {
      await callStripe(ctx, 'checkout.sessions.expire', () => stripe.checkout.sessions.expire(reference))
    } catch (thrown) {
      throw cardProviderError(stripeFault(thrown))
    }
  },
})

async function requireCredentials(ctx: Context, app: App): Promise<CardCredentials> {
  const credentials = await openCredentials(ctx, 'card', CardCredentials, app.id)
  if (!credentials) throw new AppError('payment_method_unavailable', 'card payments are not set up for this app')
  return credentials
}

async function createSession(
  ctx: Context,
  credentials: CardCredentials,
  request: PaymentRequest,
  session: ProviderSession,
): Promise<Stripe.Checkout.Session> {
  const stripe = await stripeClient(ctx.config, credentials.secretKey)
  const params = sessionParams(request, session)
  const options = { idempotencyKey: sessionKey(session, params) }
  try {
    return await callStripe(ctx, 'checkout.sessions.create', () => stripe.checkout.sessions.create(params, options))
  } catch (thrown) {
    const fault = stripeFault(thrown)
    // Stripe judges addresses more strictly than mail servers do. The payer can type another one on its page.
    if (fault.param === 'customer_email') {
      return createSession(ctx, credentials, { ...request, customerEmail: null }, session)
    }
    // Stripe repeats a refusal under the same key, so that the next try needs a key of its own. In conflict (409) and in excess (429)
    // nothing was decided.
    if (fault.kind === 'refused' && fault.httpStatus !== 409 && fault.httpStatus !== 429) {
      await abandonSession(ctx, session)
    }
    throw cardProviderError(fault)
  }
}

/** The session as Stripe has it now; null where it knows none. */
async function retrieveSession(
  ctx: Context,
  credentials: CardCredentials,
  reference: string,
): Promise<Stripe.Checkout.Session | null> {
  const stripe = await stripeClient(ctx.config, credentials.secretKey)
  const expand = { expand: ['payment_intent.latest_charge'] }
  try {
    return await callStripe(ctx, 'checkout.sessions.retrieve', () =>
      stripe.checkout.sessions.retrieve(reference, expand),
    )
  } catch (thrown) {
    const fault = stripeFault(thrown)
    if (fault.code === 'resource_missing') return null
    throw cardProviderError(fault)
  }
}

function paidAt(ctx: Context, session: Stripe.Checkout.Session): RealTime {
  const intent = session.payment_intent
  const charge = intent && typeof intent === 'object' ? intent.latest_charge : null
  return charge && typeof charge === 'object' ? asRealTime(new Date(charge.created * SECOND_MS)) : ctx.clock.now()
}
