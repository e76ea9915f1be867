import { appNow } from '#apps/app-time.ts'
import { MORE_EVENTS, type MoreEvent } from '#apps/more-events.ts'
import type { NotifiedApp } from '#apps/store.ts'
import type { Tx } from '#commands/transaction.ts'
import { formatIsoOffset, type AppTime } from '#shared/time.ts'
import type { EventData, EventType } from './events.ts'
import { insertEvent, insertEvents, type NewEvent } from './store.ts'

/** What the event is about, for searches. */
export interface EventSubject {
  readonly externalRef: string | null
  readonly transactionId: number | null
}

/** An event to write. */
export interface Emission<Type extends EventType> {
  readonly app: NotifiedApp
  readonly type: Type
  readonly data: EventData[Type]
  readonly subject: EventSubject
}

/**
 * Writes an event in the transaction of the change that it reports, and wakes the sender after the commit. The content is final: every
 * attempt sends the same bytes. Writes nothing if the event is opt-in and the app has not enabled it. If the app has no address or no
 * secret, the event is kept and not delivered.
 */
export async function emitEvent<Type extends EventType>(
  tx: Tx,
  app: NotifiedApp,
  type: Type,
  data: EventData[Type],
  subject: EventSubject,
): Promise<void> {
  if (!isSentTo(app, type)) return
  await insertEvent(tx, eventRowOf(tx, { app, type, data, subject }))
}

/** Writes several events in one statement, each as `emitEvent` does. */
export async function emitEvents<Type extends EventType>(tx: Tx, emissions: readonly Emission<Type>[]): Promise<void> {
  await insertEvents(
    tx,
    emissions.filter(({ app, type }) => isSentTo(app, type)).map((emission) => eventRowOf(tx, emission)),
  )
}

function eventRowOf<Type extends EventType>(tx: Tx, { app, type, data, subject }: Emission<Type>): NewEvent {
  const createdAt = appNow(app, tx.now)
  const isConfigured = app.webhookUrl !== null && app.webhookSecret !== null
  tx.drafts.events.push({ event_type: type, app_id: app.id, data })
  if (isConfigured) tx.afterCommit(() => tx.ctx.wakeSender())
  return {
    appId: app.id,
    eventType: type,
    externalRef: subject.externalRef,
    transactionId: subject.transactionId,
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
