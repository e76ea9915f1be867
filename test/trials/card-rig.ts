import { request } from 'undici'
import { systemClock, unixSeconds } from '#shared/time.ts'
import type { TestContext } from '../support/context.ts'
import type { DaemonProcess } from '../support/daemon-process.ts'
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

/** The payer of a checkout chooses the card on the daemon's page. */
export async function chooseCard({ url }: DaemonProcess, token: string): Promise<void> {
  const headers = { 'Content-Type': 'application/json' }
  const body = JSON.stringify({ payment_method: 'card' })
  const answer = await request(`${url}/checkout/${token}/resolve`, { method: 'POST', headers, body })
  if (answer.statusCode !== 200) throw new Error(`the card was refused: ${await answer.body.text()}`)
  await answer.body.dump()
}

/** The notification in which Stripe reports that the session is completed. */
export function completionOf(session: PeerSession): SignedEvent {
  const at = unixSeconds(systemClock.now())
  return signedEvent(CARD.webhookSecret, at, 'checkout.session.completed', sessionFacts(session))
}
