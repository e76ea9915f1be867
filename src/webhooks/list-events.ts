import { z } from 'zod'
import type { Context } from '#context.ts'
import { listPage, listQueryFields, type Page } from '#http/list-page.ts'
import { addMs, SECOND_MS } from '#shared/time.ts'
import { givenTime, text, validate } from '#shared/validate.ts'
import { EVENTS, type EventType } from './events.ts'
import { listEventRows, type Event } from './store.ts'

const TYPES = Object.keys(EVENTS) as [EventType, ...EventType[]]

/** The query parameters of `GET /api/v1/events`. */
export const ListEventsQuery = z.object({
  ...listQueryFields,
  event_type: z
    .enum(TYPES, `must be one of ${TYPES.join(', ')}`)
    .optional()
    .describe('Only events of this type.'),
  external_ref: text(191).optional().describe('Only events about this end user.'),
  created_after: givenTime
    .optional()
    .describe(
      'Only events whose `created_at` is later. To follow events, let each request overlap the previous one by some minutes: an event may become visible after one with a later time.',
    ),
  order: z
    .enum(['asc', 'desc'], 'must be asc or desc')
    .default('desc')
    .describe('`desc`: the newest first; `asc`: the oldest first.'),
})

/** A page of an app's events. `query` is the request's. */
export async function listEvents(ctx: Context, appId: number, query: unknown): Promise<Page<Event>> {
  const { event_type, external_ref, created_after, order, ...page } = validate(ListEventsQuery, query)
  const filter = {
    appId,
    status: null,
    eventType: event_type ?? null,
    externalRef: external_ref ?? null,
    // `created_at` is shown in whole seconds, so “later” means a later second.
    since: created_after ? addMs(created_after, SECOND_MS) : null,
    order,
  }
  return listPage(
    'events',
    page,
    (request) => listEventRows(ctx.db, { ...filter, ...request }),
    ({ createdAt }) => createdAt,
  )
}
