import type { AppRoute } from '#apps/authenticate.ts'
import { formatCursor } from '#http/page-of.ts'
import { requireId } from '#shared/ids.ts'
import { listEvents } from './list-events.ts'
import { presentEvent } from './present.ts'
import { getEvent } from './store.ts'

export const eventRoutes: readonly AppRoute[] = [
  {
    method: 'GET',
    path: '/api/v1/events',
    access: 'hmac',
    async run(ctx, { caller, query }) {
      const { rows, next } = await listEvents(ctx, caller.appId, query)
      return { data: rows.map(presentEvent), nextCursor: formatCursor(next) }
    },
  },
  {
    method: 'GET',
    path: '/api/v1/events/:id',
    access: 'hmac',
    async run(ctx, { caller, params }) {
      return { data: presentEvent(await getEvent(ctx.db, caller.appId, requireId('evt', params['id'] ?? ''))) }
    },
  },
]
