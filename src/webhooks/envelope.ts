import { formatId } from '#shared/ids.ts'

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
