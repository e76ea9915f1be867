import type { NotifiedApp } from '#apps/store.ts'
import { formatId } from '#shared/ids.ts'
import { formatIsoOffset, type AppTime } from '#shared/time.ts'
import type { EventData, EventType } from './events.ts'

/** What an event's row keeps of its envelope: everything but the id, which the row has only once it is written. */
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
  /** False for events that an earlier version wrote: their bytes stay as they were. */
  readonly carriesId: boolean
}

/** The bytes that every attempt sends: id, event type, app, data and time, and nothing else. Both signatures cover the id. */
export function envelopeOf({ id, body, carriesId }: StoredEnvelope): Buffer {
  return carriesId ? Buffer.concat([Buffer.from(`{"id":"${formatId('evt', id)}",`), body.subarray(1)]) : body
}
