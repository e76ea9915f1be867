import { appNow } from '#apps/app-time.ts'
import { isSentTo } from '#apps/more-events.ts'
import type { NotifiedApp } from '#apps/store.ts'
import type { Tx } from '#commands/transaction.ts'
import { envelopeContent } from './envelope.ts'
import type { EventData, EventType } from './events.ts'
import { insertEvent, insertEvents, type NewEvent } from './store.ts'

/** What to find an event by, besides its type. */
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
 * Writes an event in the transaction of the change that it reports; the sender is woken after the commit. Its content is frozen
 * here: every attempt sends the same bytes. Nothing is written where the app has to ask for the event and did not. For an app without address or secret the event is kept and not delivered.
 */
export async function emitEvent<Type extends EventType>(
  tx: Tx,
  app: NotifiedApp,
  type: Type,
  data: EventData[Type],
  subject: EventSubject,
): Promise<void> {
  if (!isSentTo(app, type)) return
  await insertEvent(tx, draft(tx, { app, type, data, subject }))
}

/** Writes a few events in one statement, each as `emitEvent` does. */
export async function emitEvents<Type extends EventType>(tx: Tx, emissions: readonly Emission<Type>[]): Promise<void> {
  await insertEvents(
    tx,
    emissions.filter(({ app, type }) => isSentTo(app, type)).map((emission) => draft(tx, emission)),
  )
}

function draft<Type extends EventType>(tx: Tx, { app, type, data, subject }: Emission<Type>): NewEvent {
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
