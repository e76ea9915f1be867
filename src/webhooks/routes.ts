import { route, type AppRoute } from '#apps/authenticate.ts'
import { requireId } from '#shared/ids.ts'
import { listEvents, ListEventsQuery } from './list-events.ts'
import { EventOutput, presentEvent } from './present.ts'
import { getEventOfApp } from './store.ts'

export const eventRoutes: readonly AppRoute[] = [
  route.list({
    id: 'listEvents',
    summary: 'List events',
    description: 'Newest first, unless `order` is `asc`. Read it to catch up after your receiver was unreachable.',
    filter: ListEventsQuery,
    method: 'GET',
    path: '/api/v1/events',
    access: 'hmac',
    item: EventOutput,
    list: (ctx, { caller, query }) => listEvents(ctx, caller.appId, query),
    present: presentEvent,
  }),
  route.query({
    id: 'getEvent',
    summary: 'Get an event',
    description: 'One event by its id, with the state of its delivery.',
    method: 'GET',
    path: '/api/v1/events/:id',
    access: 'hmac',
    output: EventOutput,
    query: async (ctx, { caller, params }) =>
      presentEvent(await getEventOfApp(ctx.db, caller.appId, requireId('evt', params['id'] ?? ''))),
  }),
]
