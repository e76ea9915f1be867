import type { NotifiedApp } from '#apps/store.ts'
import { formatId } from '#shared/ids.ts'
import { formatIsoOffset, type AppTime } from '#shared/time.ts'
import type { EventData, EventType } from './events.ts'

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

export interface StoredEnvelope {
  readonly id: number
  readonly body: Buffer
  /** False for events of an earlier version, whose bytes must not change. */
  readonly carriesId: boolean
}

/**
 * The bytes that every attempt sends: id, event type, app, data and time. Both signatures cover the id. Adding the id here saves a second
 * statement for each event; an id never changes, so the bytes do not either.
 */
export function envelopeOf({ id, body, carriesId }: StoredEnvelope): Buffer {
  return carriesId ? Buffer.concat([Buffer.from(`{"id":"${formatId('evt', id)}",`), body.subarray(1)]) : body
}
