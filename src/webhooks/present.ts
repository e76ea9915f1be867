import { z } from 'zod'
import { formatId } from '#shared/ids.ts'
import { formatTimestamp } from '#shared/time.ts'
import { AnyEvent, HAS_MORE } from './event-bodies.ts'
import { EVENTS } from './events.ts'
import type { Event } from './store.ts'

/** An event in the answer of `GET /api/v1/events` (R155). */
export const EventOutput = z
  .intersection(
    AnyEvent,
    z
      .strictObject({
        delivery_status: z
          .string()
          .describe('`pending`, `delivered`, `failed`, or `not_configured` if the app had no address or no secret.'),
        attempts: z.int().describe('The number of delivery attempts.'),
      })
      .meta(HAS_MORE),
  )
  .meta({
    id: 'Event',
    description: 'An event of the app, with the state of its delivery.',
    examples: [
      {
        id: 'evt_1',
        event_type: 'subscription.updated',
        app_id: 1,
        data: EVENTS['subscription.updated'].example,
        created_at: '2026-12-01 09:31:12',
        delivery_status: 'delivered',
        attempts: 1,
      },
    ],
  })

/** The data of the frozen envelope has its type, because `emitEvent` wrote it. */
export function presentEvent(event: Event): z.input<typeof EventOutput> {
  return {
    id: formatId('evt', event.id),
    event_type: event.eventType,
    app_id: event.appId,
    data: dataOf(event),
    created_at: formatTimestamp(event.createdAt),
    delivery_status: event.deliveryStatus,
    attempts: event.attempts,
  } as z.input<typeof EventOutput>
}

function dataOf(event: Event): Record<string, unknown> {
  return (JSON.parse(event.body.toString('utf8')) as { data: Record<string, unknown> }).data
}
