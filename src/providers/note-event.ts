import type { Context } from '#context.ts'
import { inTransaction } from '#commands/transaction.ts'
import { truncate } from '#shared/truncate.ts'
import { insertProviderEvent, type ProviderEvent } from '#transactions/store.ts'

const MAX_NOTE = 500
const MAX_EVENT_TYPE = 64

/** A provider event that changes nothing by itself and that operators must see. */
export interface ProviderNote extends Omit<ProviderEvent, 'id' | 'outcome' | 'note' | 'receivedAt'> {
  /** The provider's id of the event, or one made from its subject: the event is kept once. */
  readonly eventId: string
  readonly outcome: 'refused' | 'noted'
  /** A sentence for operators, without the name or address of a payer. */
  readonly note: string
}

/** Keeps the event for operators; returns whether it is new. */
export async function noteEvent(ctx: Context, { note, eventType, ...event }: ProviderNote): Promise<boolean> {
  const isNew = await inTransaction(ctx, (tx) =>
    insertProviderEvent(tx, {
      ...event,
      eventType: truncate(eventType, MAX_EVENT_TYPE),
      note: truncate(note, MAX_NOTE),
      receivedAt: tx.now,
    }),
  )
  if (isNew) {
    const { provider, outcome, transactionId, appId } = event
    ctx.log.warn(
      { provider, outcome, transactionId, appId, note },
      'a provider event needs attention: notification list',
    )
  }
  return isNew
}
