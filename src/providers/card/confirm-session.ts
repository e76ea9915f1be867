import type { Context } from '#context.ts'
import { confirmOnSession } from '#providers/confirm-on-session.ts'
import { noteEvent } from '#providers/note-event.ts'
import type { ProviderSession } from '#providers/store.ts'
import type { NotificationResult } from '#providers/provider.ts'
import type { RealTime } from '#shared/time.ts'
import { differences, intentOf, type CardSession } from './session-facts.ts'

/** The report that a session was paid. */
export interface PaidReport {
  /** Null for a look-up. */
  readonly eventId: string | null
  readonly eventType: string
  /** Real time. */
  readonly paidAt: RealTime
}

/**
 * Books the money of a paid Checkout Session. A notification and a look-up both use the session's id as the reference, so that the money
 * counts once. A session that differs from the one that we opened pays nothing; operators see it.
 */
export async function confirmSession(
  ctx: Context,
  session: CardSession,
  stored: ProviderSession,
  report: PaidReport,
): Promise<NotificationResult<'processed' | 'underpaid' | 'already_completed' | 'duplicate' | 'refused'>> {
  const found = differences(session, stored)
  if (found.length > 0) return refuse(ctx, stored, report, found.join('; '))
  const { outcome, isMoreAsked } = await confirmOnSession(ctx, stored, {
    events: report.eventId === null ? [] : [{ eventId: report.eventId, eventType: report.eventType }],
    reference: session.id,
    chargeReference: intentOf(session),
    amount: stored.amount,
    currency: stored.currency,
    paidAt: report.paidAt,
  })
  switch (outcome.kind) {
    case 'processed':
    case 'underpaid':
    case 'already_completed':
      return { status: outcome.kind, toClose: isMoreAsked ? stored.transactionId : null }
    case 'known_money':
      return { status: 'already_completed', toClose: isMoreAsked ? stored.transactionId : null }
    case 'duplicate':
      return { status: outcome.kind, toClose: null }
    case 'unknown_transaction':
    case 'wrong_currency':
      return refuse(ctx, stored, report, `the payment is ${outcome.kind.replace('_', ' ')} here`)
  }
}

async function refuse(
  ctx: Context,
  stored: ProviderSession,
  report: PaidReport,
  reason: string,
): Promise<NotificationResult<'refused'>> {
  await noteEvent(ctx, {
    provider: 'stripe',
    eventId: report.eventId ?? `lookup:${stored.reference ?? stored.id}`,
    eventType: report.eventType,
    appId: stored.appId,
    transactionId: stored.transactionId,
    outcome: 'refused',
    note: `Checkout Session ${stored.reference ?? ''} is paid but does not match the session that was opened: ${reason}`,
  })
  return { status: 'refused', toClose: null }
}
