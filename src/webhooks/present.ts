import { z } from 'zod'
import { formatId } from '#shared/ids.ts'
import { formatTimestamp } from '#shared/time.ts'
import { timestamp } from '#shared/validate.ts'
import type { Event } from './store.ts'

/** An event as `GET /api/v1/events` gives it (contract 3, Events). */
export const EventOutput = z.strictObject({
  id: z.string(),
  event_type: z.string(),
  data: z.record(z.string(), z.unknown()),
  created_at: timestamp,
  delivery_status: z.string(),
  attempts: z.int(),
})

export function presentEvent(event: Event): z.input<typeof EventOutput> {
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
function dataOf(event: Event): Record<string, unknown> {
  return (JSON.parse(event.body.toString('utf8')) as { data: Record<string, unknown> }).data
}
