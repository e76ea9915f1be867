import { noteRefunds } from '#providers/card/note-refunds.ts'
import { unixSeconds } from '#shared/time.ts'
import { providerEvents, type ProviderEvent } from '#transactions/store.ts'
import { enableMethod } from '../support/operators.ts'
import { startService, type Answer, type SellerClient, type TestService } from '../support/api.ts'
import type { Envelope, Redirect } from '../support/answers.ts'
import { TestClock } from '../support/context.ts'
import { aCheckout, anApp, tokenOf, type TestApp } from '../support/factories.ts'
import {
  sessionFacts,
  signedEvent,
  startStripePeer,
  type PeerSession,
  type SignedEvent,
  type StripePeer,
} from '../support/stripe-peer.ts'

export const SECRET_KEYS = ['sk_test_first', 'sk_test_second'] as const
export const WEBHOOK_SECRETS = ['whsec_first', 'whsec_second'] as const

/** A one-time purchase. */
export const PURCHASE = { mode: 'payment', plan_ref: 'book', amount: 1999, currency: 'USD' } as const

export interface CardSeller {
  readonly app: TestApp
  readonly client: SellerClient
  readonly webhookSecret: string
}

/** A running service beside a local Stripe, and sellers who take cards. */
export interface CardShop {
  readonly service: TestService
  readonly stripe: StripePeer
  readonly clock: TestClock
  readonly first: CardSeller
  readonly second: CardSeller
  /** The payer of a new checkout, a one-time purchase unless `body` says otherwise, chooses the card. */
  open(seller?: CardSeller, body?: object): Promise<OpenedCard>
  choose(token: string): Promise<Answer<Redirect>>
  /** Sends a notification as Stripe does. */
  notify(event: SignedEvent): Promise<Answer<{ status: string }>>
  /** The event of a session, signed now with the seller's secret. */
  event(session: PeerSession, options?: EventOptions): SignedEvent
  /** What operators see of the provider. */
  notes(): Promise<ProviderEvent[]>
  refundsNoted(): Promise<number>
  stop(): Promise<void>
}

export interface OpenedCard {
  readonly transactionId: number
  readonly token: string
  readonly url: string
  readonly session: PeerSession
}

export interface EventOptions {
  readonly type?: string
  readonly id?: string
  readonly secret?: string
  /** Seconds from now. */
  readonly late?: number
  readonly changes?: object
}

export async function startCardShop(): Promise<CardShop> {
  const clock = new TestClock()
  const stripe = await startStripePeer(clock, SECRET_KEYS)
  const service = await startService({ BILLING_STRIPE_API_BASE: stripe.base }, clock)
  const seller = async (index: 0 | 1): Promise<CardSeller> => {
    const app = await anApp(service.ctx, { sandbox: false })
    const webhookSecret = WEBHOOK_SECRETS[index]
    await enableMethod(service.ctx, 'tester', app.app, 'card', { secretKey: SECRET_KEYS[index], webhookSecret })
    return { app, client: service.seller(app), webhookSecret }
  }
  const first = await seller(0)
  const second = await seller(1)
  const choose = (token: string): Promise<Answer<Redirect>> =>
    service.call<Envelope<Redirect>>('POST', `/checkout/${token}/resolve`, {
      raw: JSON.stringify({ payment_method: 'card' }),
      headers: { 'Content-Type': 'application/json' },
    })
  return {
    service,
    stripe,
    clock,
    first,
    second,
    choose,
    async open(who = first, body = {}) {
      const asked = 'price_id' in body ? body : { ...PURCHASE, ...body }
      const checkout = await aCheckout(service.ctx, who.app, asked)
      const token = tokenOf(checkout)
      const answer = await choose(token)
      if (answer.status !== 200) throw new Error(`the card was refused: ${answer.text}`)
      const url: string = answer.body.data.redirect_url
      const session = stripe.sessions.find((candidate) => candidate.url === url)
      return { transactionId: checkout.transaction_id!, token, url, session: session! }
    },
    notify: (event) =>
      service.call('POST', '/api/v1/webhooks/card-provider', { raw: event.body, headers: event.headers }),
    event(session, { type = 'checkout.session.completed', id, secret, late = 0, changes = {} } = {}) {
      const owner = session.account === SECRET_KEYS[0] ? first : second
      const at = unixSeconds(clock.now()) + late
      return signedEvent(secret ?? owner.webhookSecret, at, type, { ...sessionFacts(session), ...changes }, id)
    },
    notes: () => service.ctx.db.all(providerEvents, "WHERE outcome <> 'applied' ORDER BY id"),
    refundsNoted: () => noteRefunds(service.ctx),
    async stop() {
      await service.stop()
      await stripe.stop()
    },
  }
}
