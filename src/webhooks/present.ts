import { formatId } from '#shared/ids.ts'
import { formatTimestamp } from '#shared/time.ts'
import type { Event } from './store.ts'

/** An event as `GET /api/v1/events` gives it (contract 3, Events). */
export function presentEvent(event: Event): object {
  return {
    id: formatId('evt', event.id),
    event_type: event.eventType,
    data: dataOf(event),
    created_at: formatTimestamp(event.createdAt),
    delivery_status: event.deliveryStatus,
    attempts: event.attempts,
  }
}

/** What was told: the `data` of the frozen envelope. */
function dataOf(event: Event): unknown {
  return (JSON.parse(event.body.toString('utf8')) as { data: unknown }).data
}
