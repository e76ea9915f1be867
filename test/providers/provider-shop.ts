import { unixSeconds } from '#shared/time.ts'
import { enableMethod } from '../support/operators.ts'
import { startService, type Answer, type SellerClient, type TestService } from '../support/api.ts'
import type { Envelope, Redirect } from '../support/answers.ts'
import { TestClock } from '../support/context.ts'
import { anApp, type AppOptions, type TestApp } from '../support/factories.ts'
import { payosNotification, startPayosPeer, type PayosPeer, type PeerLink } from '../support/payos-peer.ts'
import {
  sessionFacts,
  signedEvent,
  startStripePeer,
  type PeerSession,
  type StripePeer,
} from '../support/stripe-peer.ts'
import { PAYOS_KEYS } from './payos-shop.ts'

export const FIRST_CARD = { secretKey: 'sk_test_first', webhookSecret: 'whsec_first' } as const

/** A running service beside a local Stripe and a local PayOS, and a seller who takes both. */
export interface ProviderShop {
  readonly clock: TestClock
  readonly stripe: StripePeer
  /** The keys that Stripe knows; a test may change them. */
  readonly stripeKeys: string[]
  readonly payos: PayosPeer
  readonly service: TestService
  readonly app: TestApp
  readonly client: SellerClient
  choose(token: string, method: string): Promise<Answer<Redirect>>
  /** Stripe reports a session; `secret` is the seller's first one by default. */
  notifyStripe(
    session: PeerSession,
    options?: { readonly type?: string; readonly secret?: string },
  ): Promise<Answer<{ status: string }>>
  /** PayOS reports a transfer of this amount. */
  notifyPayos(link: PeerLink, amount: number): Promise<Answer<{ status: string }>>
  stop(): Promise<void>
}

export async function startProviderShop(options: AppOptions = { sandbox: false }): Promise<ProviderShop> {
  const clock = new TestClock()
  const stripeKeys = ['sk_test_first', 'sk_test_second']
  const stripe = await startStripePeer(clock, stripeKeys)
  const payos = await startPayosPeer(clock, PAYOS_KEYS)
  const service = await startService(
    { BILLING_STRIPE_API_BASE: stripe.base, BILLING_PAYOS_API_BASE: payos.base },
    clock,
  )
  const app = await anApp(service.ctx, options)
  await enableMethod(service.ctx, 'tester', app.app, 'card', FIRST_CARD)
  await enableMethod(service.ctx, 'tester', app.app, 'payos', PAYOS_KEYS)
  return {
    clock,
    stripe,
    stripeKeys,
    payos,
    service,
    app,
    client: service.seller(app),
    choose: (token, method) =>
      service.call<Envelope<Redirect>>('POST', `/checkout/${token}/resolve`, {
        raw: JSON.stringify({ payment_method: method }),
        headers: { 'Content-Type': 'application/json' },
      }),
    notifyStripe(session, { type = 'checkout.session.completed', secret = FIRST_CARD.webhookSecret } = {}) {
      const { body, headers } = signedEvent(secret, unixSeconds(clock.now()), type, sessionFacts(session))
      return service.call('POST', '/api/v1/webhooks/card-provider', { raw: body, headers })
    },
    notifyPayos(link, amount) {
      const reported = payosNotification(PAYOS_KEYS.checksumKey, link, payos.transfer(link, amount))
      return service.call('POST', '/api/v1/webhooks/bank-transfer-provider', { raw: JSON.stringify(reported) })
    },
    async stop() {
      await service.stop()
      await stripe.stop()
      await payos.stop()
    },
  }
}
