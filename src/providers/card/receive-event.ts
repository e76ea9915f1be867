import { z } from 'zod'
import type { Context } from '#context.ts'
import { admit } from '#http/admission.ts'
import { noteEvent } from '#providers/note-event.ts'
import { parseContent, unverified } from '#providers/notification-content.ts'
import type { Decision } from '#providers/provider.ts'
import { findProviderSession, wasToldBefore } from '#providers/store.ts'
import { parseNumericId } from '#shared/ids.ts'
import { SECOND_MS, asRealTime, unixSeconds } from '#shared/time.ts'
import { confirmSession } from './confirm-session.ts'
import { REFUND_EVENTS, receiveRefundEvent } from './note-refunds.ts'
import { CardSession, isPaid } from './session-facts.ts'
import { isSignedWith, isTimely, parseSignature, type CardSignature } from './signature.ts'
import { listWebhookSecrets, webhookSecretOf } from './webhook-secrets.ts'

/** The only two that tell of money (specification 4). */
const PAYMENT_EVENTS = new Set(['checkout.session.completed', 'checkout.session.async_payment_succeeded'])

const CardEvent = z.looseObject({
  id: z.string().regex(/^[\x21-\x7e]{1,180}$/),
  type: z.string().min(1),
  created: z.number().int().min(0).optional(),
  data: z.looseObject({ object: z.looseObject({}) }),
})
type CardEvent = z.infer<typeof CardEvent>

/** What was sent to the endpoint, as it came. */
export interface CardNotification {
  /** The `Stripe-Signature` header; several are none. */
  readonly signature: string | string[] | undefined
  readonly body: Buffer
}

export type CardDecision = Decision<'processed' | 'already_completed' | 'duplicate' | 'ignored' | 'refused' | 'noted'>

const IGNORED: CardDecision = { status: 'ignored', transactionId: null }

/**
 * Takes one notification of the card provider; one address serves the apps of all sellers. Throws `invalid_request` (400) unless the
 * exact bytes are signed, now, with the webhook secret of some app: of the very app that a session's metadata names. Every decision
 * about the content is an answer (200); what is thrown besides is our own fault, and the provider tells it again.
 */
export async function receiveCardEvent(ctx: Context, notification: CardNotification): Promise<CardDecision> {
  const signature = parseSignature(typeof notification.signature === 'string' ? notification.signature : undefined)
  if (!signature || !isTimely(signature, unixSeconds(ctx.clock.now()))) throw unverified()
  const content = parseContent(notification.body)
  const appIds = await signers(ctx, signature, notification.body, namedApp(content))
  const event = CardEvent.safeParse(content)
  if (appIds.length === 0 || !event.success) throw unverified()
  if (REFUND_EVENTS.has(event.data.type)) {
    return { status: await receiveRefundEvent(ctx, appIds, event.data.data.object), transactionId: null }
  }
  return PAYMENT_EVENTS.has(event.data.type) ? takePayment(ctx, appIds, event.data) : IGNORED
}

/** The metadata that we give to sessions, and through them to charges. */
const Ours = z.object({
  data: z.object({ object: z.object({ metadata: z.object({ app_id: z.string(), transaction_id: z.string() }) }) }),
})

/** The app that our own metadata names; null for content of others. */
function namedApp(content: unknown): number | null {
  const ours = Ours.safeParse(content)
  return ours.success ? parseNumericId(ours.data.data.object.metadata.app_id) : null
}

/** The apps whose secret signed these bytes: several where sellers' apps share a provider account. */
async function signers(
  ctx: Context,
  signature: CardSignature,
  body: Buffer,
  namedAppId: number | null,
): Promise<number[]> {
  const secrets = await admit(ctx, 'notifier', (db) =>
    namedAppId === null ? listWebhookSecrets(ctx, db) : webhookSecretOf(ctx, db, namedAppId),
  )
  return secrets.filter(({ secret }) => isSignedWith(secret, signature, body)).map(({ appId }) => appId)
}

async function takePayment(ctx: Context, appIds: readonly number[], event: CardEvent): Promise<CardDecision> {
  const session = CardSession.safeParse(event.data.object)
  if (!session.success) throw unverified()
  if (!isPaid(session.data)) return IGNORED
  if (await wasToldBefore(ctx.db, 'stripe', event.id)) return { status: 'duplicate', transactionId: null }
  const stored = await findProviderSession(ctx.db, 'stripe', session.data.id)
  if (!stored) return namedApp(event) === null ? IGNORED : refuseUnknown(ctx, appIds, event, session.data.id)
  if (!appIds.includes(stored.appId)) return refuseForeign(ctx, appIds, event, stored.transactionId)
  const paidAt = event.created === undefined ? ctx.clock.now() : asRealTime(new Date(event.created * SECOND_MS))
  const status = await confirmSession(ctx, session.data, stored, { eventId: event.id, eventType: event.type, paidAt })
  return { status, transactionId: stored.transactionId }
}

async function refuseUnknown(
  ctx: Context,
  appIds: readonly number[],
  event: CardEvent,
  sessionId: string,
): Promise<CardDecision> {
  await noteEvent(ctx, {
    provider: 'stripe',
    eventId: event.id,
    eventType: event.type,
    appId: appIds[0] ?? null,
    transactionId: null,
    outcome: 'refused',
    note: `Checkout Session ${sessionId} is paid and names this service, which did not open it`,
  })
  return { status: 'refused', transactionId: null }
}

async function refuseForeign(
  ctx: Context,
  appIds: readonly number[],
  event: CardEvent,
  transactionId: number,
): Promise<CardDecision> {
  await noteEvent(ctx, {
    provider: 'stripe',
    // Under a name of its own: whoever signs for one app must not use up the event ids of another.
    eventId: `${event.id}@${appIds.join(',').slice(0, 10)}`,
    eventType: event.type,
    appId: appIds[0] ?? null,
    transactionId,
    outcome: 'refused',
    note: `signed with the secret of app ${appIds.join(', ')}, for a session of another app`,
  })
  return { status: 'refused', transactionId: null }
}
