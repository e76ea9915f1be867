import { formatId } from '#shared/ids.ts'

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
