import { setTimeout as delay } from 'node:timers/promises'
import type { App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { databaseNow } from '#db/database-now.ts'
import { invalidField } from '#shared/errors.ts'
import { formatId } from '#shared/ids.ts'
import { addMs, formatTimestamp, MINUTE_MS, type RealTime } from '#shared/time.ts'
import { envelopeOf } from './envelope.ts'
import { EVENTS } from './events.ts'
import type { Forwarded } from './forward-events.ts'
import { lastEventId, listEventIdsSince, listEventsById, type Event } from './store.ts'

const POLL_MS = 500
const PAGE = 100
/**
 * Each poll rereads this period, because a transaction may commit after later ones. It is longer than any transaction and any difference
 * between clocks.
 */
const OVERLAP_MS = 5 * MINUTE_MS

/** A test whether an event type matches a pattern (`subscription.updated`, `subscription.*`). Throws `invalid_request` for an unknown one. */
export function eventTypesOf(patterns: readonly string[]): (type: string) => boolean {
  for (const pattern of patterns) {
    if (!Object.keys(EVENTS).some((type) => isNamed(type, pattern))) {
      throw invalidField('events', `${pattern} matches none of ${Object.keys(EVENTS).join(', ')}`)
    }
  }
  return (type) => patterns.length === 0 || patterns.some((pattern) => isNamed(type, pattern))
}

function isNamed(type: string, pattern: string): boolean {
  return pattern.endsWith('*') ? type.startsWith(pattern.slice(0, -1)) : type === pattern
}

/** Yields an app's events as they are committed, each once; first those written since `since`, unless it is null. Ends with the signal. */
export async function* followEvents(
  ctx: Context,
  app: App,
  { since, signal }: { readonly since: RealTime | null; readonly signal: AbortSignal },
): AsyncGenerator<Event, void, undefined> {
  let above = await lastEventId(ctx.db)
  let from = since ?? addMs(await databaseNow(ctx, ctx.db), -OVERLAP_MS)
  let seen = new Set(since === null ? await listEventIdsSince(ctx.db, app.id, from, above) : [])
  while (!signal.aborted) {
    const startedAt = await databaseNow(ctx, ctx.db)
    const listed = await listEventIdsSince(ctx.db, app.id, from, above)
    const fresh = listed.filter((id) => !seen.has(id))
    for (let at = 0; at < fresh.length; at += PAGE) yield* await listEventsById(ctx.db, fresh.slice(at, at + PAGE))
    seen = new Set(listed)
    above = Math.max(above, listed.at(-1) ?? 0)
    // Never moves back, so that `seen` covers everything that the next list repeats.
    const overlapping = addMs(startedAt, -OVERLAP_MS)
    if (overlapping > from) from = overlapping
    if (fresh.length === 0) await delay(POLL_MS, undefined, { signal }).catch(() => undefined)
  }
}

/** The view of a followed event: its envelope, and the answer if it was forwarded. */
export function followedView(event: Event, forwarded: Forwarded | null) {
  return {
    id: formatId('evt', event.id),
    event_type: event.eventType,
    at: formatTimestamp(event.writtenAt),
    ...(JSON.parse(envelopeOf(event).toString('utf8')) as object),
    forwarded,
  }
}
