import { appNow } from '#apps/app-time.ts'
import { MORE_EVENTS, type MoreEvent } from '#apps/more-events.ts'
import type { NotifiedApp } from '#apps/store.ts'
import type { Tx } from '#commands/transaction.ts'
import { formatIsoOffset, type AppTime } from '#shared/time.ts'
import type { EventData, EventType } from './events.ts'
import { insertEvents, type NewEvent } from './store.ts'

interface EmissionOf<Type extends EventType> {
  readonly app: NotifiedApp
  readonly type: Type
  readonly data: EventData[Type]
  /** The transaction behind it, if `data` does not name one. */
  readonly transactionId?: number | null
}

/** An event to write: a type and its data. */
export type Emission = { [Type in EventType]: EmissionOf<Type> }[EventType]

/**
 * Writes an event in the transaction of the change that it reports, and wakes the sender after the commit. The content is final: every
 * attempt sends the same bytes. Writes nothing if the event is opt-in and the app has not enabled it. If the app has no address or no
 * secret, the event is kept and not delivered.
 */
export async function emitEvent(tx: Tx, emission: Emission): Promise<void> {
  await emitEvents(tx, [emission])
}

/** Writes several events in one statement, each as `emitEvent` does. */
export async function emitEvents(tx: Tx, emissions: readonly Emission[]): Promise<void> {
  const sent = emissions.filter(({ app, type }) => isSentTo(app, type))
  await insertEvents(
    tx,
    sent.map((emission) => eventRowOf(tx, emission)),
  )
}

function eventRowOf(tx: Tx, { app, type, data, transactionId }: Emission): NewEvent {
  const createdAt = appNow(app, tx.now)
  const isConfigured = app.webhookUrl !== null && app.webhookSecret !== null
  tx.drafts.events.push({ event_type: type, app_id: app.id, data })
  if (isConfigured) tx.afterCommit(() => tx.ctx.wakeSender())
  // What the event is about, for searches.
  const named: { readonly external_ref?: string; readonly transaction_id?: number } = data
  return {
    appId: app.id,
    eventType: type,
    externalRef: named.external_ref ?? null,
    transactionId: named.transaction_id ?? transactionId ?? null,
    body: envelopeContent(app, type, data, createdAt),
    deliveryStatus: isConfigured ? 'pending' : 'not_configured',
    createdAt,
    writtenAt: tx.now,
    retries: tx.ctx.config.webhook.retryMinutes.length,
  }
}

/** The part of the envelope that an event's row stores: everything but the id, which exists only once the row is written. */
export function envelopeContent<Type extends EventType>(
  app: Pick<NotifiedApp, 'id'>,
  type: Type,
  data: EventData[Type],
  createdAt: AppTime,
): Buffer {
  const content = { event_type: type, app_id: app.id, data, created_at: formatIsoOffset(createdAt) }
  return Buffer.from(JSON.stringify(content))
}

/** Whether events of this type are written for the app. */
export function isSentTo(app: { readonly moreEvents: readonly MoreEvent[] | null }, type: string): boolean {
  const more = MORE_EVENTS.find((one) => one === type)
  return more === undefined || (app.moreEvents ?? []).includes(more)
}
