import type { Context } from '#context.ts'
import { ListQuery, pageOf, parseCursor, type Page } from '#http/page-of.ts'
import { validate } from '#shared/validate.ts'
import { listEventRows, type Event } from './store.ts'

/** A page of an app's events, newest first (contract 3, Events). `query` is the request's. */
export async function listEvents(ctx: Context, appId: number, query: unknown): Promise<Page<Event>> {
  const { limit, cursor } = validate(ListQuery, query)
  const rows = await listEventRows(ctx.db, { appId, status: null, below: parseCursor(cursor), limit: limit + 1 })
  return pageOf(rows, limit)
}
