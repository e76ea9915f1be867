import { z } from 'zod'
import type { Context } from '#context.ts'
import { admit } from '#http/admission.ts'
import type { ProviderAccount } from '#providers/accounts.ts'
import { noteEvent } from '#providers/note-event.ts'
import { endSession, markProcessing } from '#providers/session-status.ts'
import { parseContent, unverified } from '#providers/notification-content.ts'
import type { NotificationResult } from '#providers/provider.ts'
import { findReportedSession } from '#providers/store.ts'
import { parseNumericId } from '#shared/ids.ts'
import { isTimely } from '#shared/signed-time.ts'
import { fromUnixSeconds } from '#shared/time.ts'
import { cardAccounts, type CardCredentials } from './accounts.ts'
import { confirmSession } from './confirm-session.ts'
import { REFUND_EVENTS, receiveRefundEvent } from './note-refunds.ts'
import { CardSession, isPaid } from './session-facts.ts'
import { isSignedWith, parseSignature, type CardSignature } from './signature.ts'

const PAYMENT_FAILED = 'checkout.session.async_payment_failed'
/** Events about a session, the last of which reports no money. */
const SESSION_EVENTS = new Set([
  'checkout.session.completed',
  'checkout.session.async_payment_succeeded',
  PAYMENT_FAILED,
])

const CardEvent = z.looseObject({
  id: z.string().regex(/^[\x21-\x7e]{1,180}$/),
  type: z.string().min(1),
  created: z.number().int().min(0).optional(),
  data: z.looseObject({ object: z.looseObject({}) }),
})
type CardEvent = z.infer<typeof CardEvent>

/** A request to the endpoint. */
export interface CardNotification {
  /** The `Stripe-Signature` header; several headers count as none. */
  readonly signature: string | string[] | undefined
  readonly body: Buffer
}

export type CardResult = NotificationResult<
  'processed' | 'underpaid' | 'already_completed' | 'duplicate' | 'ignored' | 'refused' | 'noted'
>

const IGNORED: CardResult = { status: 'ignored', toClose: null }

/**
 * Takes one notification of the card provider; one address serves the apps of all sellers. Throws `invalid_request` (400) unless the
 * exact bytes have a recent signature by the webhook secret of an app: of the app that a session's metadata names, if any. Every
 * decision about the content is an answer (200). Any other error is our own, and the provider sends the notification again.
 */
export async function receiveCardEvent(ctx: Context, notification: CardNotification): Promise<CardResult> {
  const signature = parseSignature(typeof notification.signature === 'string' ? notification.signature : undefined)
  if (!signature || !isTimely(signature.timestamp, ctx.clock.now())) throw unverified()
  const content = parseContent(notification.body)
  const accounts = await signers(ctx, signature, notification.body, namedApp(content))
  const appIds = [...new Set(accounts.map(({ appId }) => appId))]
  const event = CardEvent.safeParse(content)
  if (appIds.length === 0 || !event.success) throw unverified()
  if (REFUND_EVENTS.has(event.data.type)) {
    return { status: await receiveRefundEvent(ctx, accounts, event.data.data.object), toClose: null }
  }
  return SESSION_EVENTS.has(event.data.type) ? takePayment(ctx, appIds, event.data) : IGNORED
}

/** Our metadata of sessions, which their charges have too. */
const OwnMetadata = z.object({
  data: z.object({ object: z.object({ metadata: z.object({ app_id: z.string(), transaction_id: z.string() }) }) }),
})

/** The app that our metadata names; null if there is no such metadata. */
function namedApp(content: unknown): number | null {
  const ours = OwnMetadata.safeParse(content)
  return ours.success ? parseNumericId(ours.data.data.object.metadata.app_id) : null
}

/**
 * The accounts whose secret signed these bytes, the newest of an app first. There are several if apps share an account at the provider.
 * Disabled methods and apps count, because their open payments still complete.
 */
async function signers(
  ctx: Context,
  signature: CardSignature,
  body: Buffer,
  namedAppId: number | null,
): Promise<ProviderAccount<CardCredentials>[]> {
  const accounts = await admit(ctx, 'notifier', (db) => cardAccounts.inUse(ctx, namedAppId, db))
  return accounts.filter(({ credentials }) => isSignedWith(credentials.webhookSecret, signature, body))
}

async function takePayment(ctx: Context, appIds: readonly number[], event: CardEvent): Promise<CardResult> {
  const session = CardSession.safeParse(event.data.object)
  if (!session.success) throw unverified()
  if (event.type === PAYMENT_FAILED || !isPaid(session.data)) return recordUnpaid(ctx, appIds, event.type, session.data)
  const stored = await findReportedSession(ctx.db, 'stripe', { reference: session.data.id, eventId: event.id })
  if (!stored) return namedApp(event) === null ? IGNORED : refuseUnknown(ctx, appIds, event, session.data.id)
  if (stored.isEventKnown) return { status: 'duplicate', toClose: null }
  if (!appIds.includes(stored.appId)) return refuseForeign(ctx, appIds, event, stored.transactionId)
  const paidAt = event.created === undefined ? ctx.clock.now() : fromUnixSeconds(event.created)
  return confirmSession(ctx, session.data, stored, { eventId: event.id, eventType: event.type, paidAt })
}

/** Records that the money of a completed session is on its way, or that it failed, so that the payer can try again. */
async function recordUnpaid(
  ctx: Context,
  appIds: readonly number[],
  eventType: string,
  session: CardSession,
): Promise<CardResult> {
  const isOver = session.status === 'complete' && session.payment_status === 'unpaid'
  const stored = isOver ? await findReportedSession(ctx.db, 'stripe', { reference: session.id, eventId: null }) : null
  if (!stored || !appIds.includes(stored.appId)) return IGNORED
  if (eventType === PAYMENT_FAILED) await endSession(ctx, stored, 'closed')
  else await markProcessing(ctx, stored)
  return IGNORED
}

async function refuseUnknown(
  ctx: Context,
  appIds: readonly number[],
  event: CardEvent,
  sessionId: string,
): Promise<CardResult> {
  const isNew = await noteEvent(ctx, {
    provider: 'stripe',
    eventId: event.id,
    eventType: event.type,
    appId: appIds[0] ?? null,
    transactionId: null,
    outcome: 'refused',
    note: `Checkout Session ${sessionId} is paid and names this service, which did not open it`,
  })
  return { status: isNew ? 'refused' : 'duplicate', toClose: null }
}

async function refuseForeign(
  ctx: Context,
  appIds: readonly number[],
  event: CardEvent,
  transactionId: number,
): Promise<CardResult> {
  await noteEvent(ctx, {
    provider: 'stripe',
    // A distinct id, so that a signer for one app cannot use up the event ids of another.
    eventId: `${event.id}@${appIds.join(',').slice(0, 10)}`,
    eventType: event.type,
    appId: appIds[0] ?? null,
    transactionId,
    outcome: 'refused',
    note: `signed with the secret of app ${appIds.join(', ')}, for a session of another app`,
  })
  return { status: 'refused', toClose: null }
}
