import { appNow } from '#apps/app-time.ts'
import type { App } from '#apps/store.ts'
import type { Tx } from '#commands/transaction.ts'
import { formatIsoOffset, type AppTime } from '#shared/time.ts'
import type { EventData, EventType } from './events.ts'
import { insertEvent } from './store.ts'

/** What an event is found by, besides its type. */
export interface EventSubject {
  readonly externalRef: string | null
  readonly transactionId: number | null
}

/**
 * Writes an event in the transaction of the change that it tells of; the sender is woken after the commit. The bytes are frozen
 * here: every attempt sends the same. An app without address or secret gets no delivery, and the event is kept all the same.
 */
export async function emitEvent<Type extends EventType>(
  tx: Tx,
  app: App,
  type: Type,
  data: EventData[Type],
  subject: EventSubject,
): Promise<void> {
  const createdAt = appNow(app, tx.now)
  const isConfigured = app.webhookUrl !== null && app.webhookSecret !== null
  await insertEvent(tx, {
    appId: app.id,
    eventType: type,
    externalRef: subject.externalRef,
    transactionId: subject.transactionId,
    body: envelopeOf(app, type, data, createdAt),
    deliveryStatus: isConfigured ? 'pending' : 'not_configured',
    createdAt,
    writtenAt: tx.now,
    retries: tx.ctx.config.webhook.retryMinutes.length,
  })
  tx.drafts.events.push({ event_type: type, app_id: app.id, data })
  if (isConfigured) tx.afterCommit(() => tx.ctx.wakeSender())
}

/** The bytes that are sent: event type, app, data, time, and nothing else (specification 6). */
export function envelopeOf<Type extends EventType>(
  app: Pick<App, 'id'>,
  type: Type,
  data: EventData[Type],
  createdAt: AppTime,
): Buffer {
  const envelope = { event_type: type, app_id: app.id, data, created_at: formatIsoOffset(createdAt) }
  return Buffer.from(JSON.stringify(envelope))
}
