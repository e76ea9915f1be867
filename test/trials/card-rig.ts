import { systemClock, unixSeconds } from '#shared/time.ts'
import type { TestContext } from '../support/context.ts'
import { anApp, type AppOptions, type TestApp } from '../support/factories.ts'
import { enableMethod } from '../support/operators.ts'
import { sessionFacts, signedEvent, type PeerSession, type SignedEvent } from '../support/stripe-peer.ts'

/** The keys of every seller at the local Stripe. */
export const CARD = { secretKey: 'sk_test_trial', webhookSecret: 'whsec_trial' }

/** A live app that takes cards. */
export async function aCardSeller(ctx: TestContext, options: AppOptions = {}): Promise<TestApp> {
  const app = await anApp(ctx, { sandbox: false, ...options })
  await enableMethod(ctx, 'trial', app.app, 'card', CARD)
  return app
}

/** The notification in which Stripe reports that the session is completed. */
export function completionOf(session: PeerSession): SignedEvent {
  const at = unixSeconds(systemClock.now())
  return signedEvent(CARD.webhookSecret, at, 'checkout.session.completed', sessionFacts(session))
}
