import type { Context } from '#context.ts'
import { listPage, type Page, type PageRequest } from '#http/page-of.ts'
import { listEventRows, type Event } from './store.ts'

/** A page of an app's events, newest first. `query` is the request's. */
export async function listEvents(ctx: Context, appId: number, query: unknown): Promise<Page<Event>> {
  const list = (request: PageRequest) => listEventRows(ctx.db, { appId, status: null, ...request })
  return listPage(query, list, ({ createdAt }) => createdAt)
}
