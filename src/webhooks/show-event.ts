import type { Context } from '#context.ts'
import { requireId } from '#shared/ids.ts'
import { formatTimestamp } from '#shared/time.ts'
import { envelopeOf } from './envelope.ts'
import { presentDelivery, type DeliveryView } from './list-deliveries.ts'
import { listAttempts } from './attempts/store.ts'
import { getEvent } from './store.ts'

/** One event with its request and the outcome of each attempt. Times are real. */
export interface EventDetails extends DeliveryView {
  readonly app_id: number
  /** The body of each attempt. */
  readonly payload: unknown
  /** The headers that all attempts share. Each attempt has its own signatures. */
  readonly headers: Readonly<Record<string, string>>
  readonly tries: readonly {
    readonly attempt: number
    readonly at: string
    readonly http_status: number | null
    readonly error: string | null
    readonly duration_ms: number
    readonly answer: string | null
  }[]
}

/** Throws `not_found`. `eventId` is `evt_12`. */
export async function showEvent(ctx: Context, eventId: string): Promise<EventDetails> {
  const id = requireId('evt', eventId)
  const event = await getEvent(ctx.db, id)
  const attempts = await listAttempts(ctx.db, id)
  const view = presentDelivery(event)
  return {
    app_id: event.appId,
    ...view,
    payload: JSON.parse(envelopeOf(event).toString('utf8')),
    headers: {
      'Content-Type': 'application/json',
      'X-Gateway-Event-Id': view.id,
      'X-Gateway-Event-Type': view.event_type,
      'webhook-id': view.id,
    },
    tries: attempts.map((attempt) => ({
      attempt: attempt.attempt,
      at: formatTimestamp(attempt.startedAt),
      http_status: attempt.httpStatus,
      error: attempt.error,
      duration_ms: attempt.durationMs,
      answer: attempt.responseHead,
    })),
  }
}
