import { z } from 'zod'
import { publicId } from '#shared/validate.ts'
import { EVENTS, type EventType } from './events.ts'

/** In a list, an event has further fields. Without this setting, the JSON Schema of the event would refuse them. */
export const HAS_MORE = { unevaluatedProperties: true }

/** An event as receivers and `GET /events` get it (R155): one type, so that sellers can handle both with one function. */
const bodyOf = (type: EventType) =>
  z
    .strictObject({
      id: publicId('evt').describe(
        'The same for all attempts. Both signatures cover it. Use it to skip events that you have already handled.',
      ),
      event_type: z.literal(type),
      app_id: z.int(),
      data: EVENTS[type].data,
      created_at: z.string().describe('ISO 8601 with an offset in a webhook, `YYYY-MM-DD HH:MM:SS` in UTC in a list.'),
    })
    .meta({ id: eventName(type), description: EVENTS[type].when, ...HAS_MORE })

/** `SubscriptionUpdatedEvent`, as the reference and the client name it. */
export function eventName(type: EventType): string {
  const words = type.split(/[._]/).map((word) => word.slice(0, 1).toUpperCase() + word.slice(1))
  return `${words.join('')}Event`
}

const types = Object.keys(EVENTS) as EventType[]
export const EVENT_BODIES = Object.fromEntries(types.map((type) => [type, bodyOf(type)])) as Record<
  EventType,
  ReturnType<typeof bodyOf>
>
const [first, ...others] = Object.values(EVENT_BODIES)
if (!first) throw new Error('there are no events')
export const AnyEvent = z.discriminatedUnion('event_type', [first, ...others])
