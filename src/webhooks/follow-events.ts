import { setTimeout as delay } from 'node:timers/promises'
import { secretPlace, type App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { openGuardedClient } from '#http/outbound.ts'
import { AppError } from '#shared/errors.ts'
import { formatId } from '#shared/ids.ts'
import { unixSeconds, type RealTime } from '#shared/time.ts'
import { EVENTS } from './events.ts'
import { signingKeys, webhookHeaders } from './signature.ts'
import { firstEventSince, lastEventId, listEventsFrom, type Event } from './store.ts'

const POLL_MS = 500
const PAGE = 100
/** A transaction with a lower id may commit later: so many ids are read again. */
const OVERLAP = 1000

/** Whether an event type matches one of the patterns: `subscription.updated`, `subscription.*`. Throws `invalid_request` for a pattern without match. */
export function eventTypesOf(patterns: readonly string[]): (type: string) => boolean {
  for (const pattern of patterns) {
    if (!Object.keys(EVENTS).some((type) => isNamed(type, pattern))) {
      throw new AppError('invalid_request', `events: ${pattern} names none of ${Object.keys(EVENTS).join(', ')}`)
    }
  }
  return (type) => patterns.length === 0 || patterns.some((pattern) => isNamed(type, pattern))
}

function isNamed(type: string, pattern: string): boolean {
  return pattern.endsWith('*') ? type.startsWith(pattern.slice(0, -1)) : type === pattern
}

/** An app's events as they are written, each once, oldest first, beginning with those since a time if one is given. Ends with the signal. */
export async function* followEvents(
  ctx: Context,
  app: App,
  { since, signal }: { readonly since: RealTime | null; readonly signal: AbortSignal },
): AsyncGenerator<Event, void, undefined> {
  const last = await lastEventId(ctx.db)
  const first = since === null ? last + 1 : ((await firstEventSince(ctx.db, app.id, since)) ?? last + 1)
  const seen = new Set<number>()
  let highest = first - 1
  while (!signal.aborted) {
    const from = Math.max(first, highest - OVERLAP + 1)
    for (const id of seen) if (id < from) seen.delete(id)
    const page = await listEventsFrom(ctx.db, app.id, from, PAGE + seen.size)
    const fresh = page.filter(({ id }) => !seen.has(id))
    for (const event of fresh) {
      seen.add(event.id)
      highest = Math.max(highest, event.id)
      yield event
    }
    if (fresh.length === 0) await delay(POLL_MS, undefined, { signal }).catch(() => undefined)
  }
}

/** How a local server answered an event. `error` is null if it acknowledged. */
export interface Forwarded {
  readonly http_status: number | null
  readonly error: string | null
  readonly duration_ms: number
  readonly answer: string | null
}

export interface Forwarder {
  send(event: Event): Promise<Forwarded>
  close(): void
}

/**
 * Sends events to an address of the operator's choice, also on this machine, signed like real deliveries, which are not affected.
 * Nothing is recorded. Throws `invalid_request` if the app has no webhook secret.
 */
export function openForwarder(ctx: Context, app: App, url: string): Forwarder {
  if (app.webhookSecret === null) {
    throw new AppError(
      'invalid_request',
      `app ${app.id} has no webhook secret: billing-cli app rotate-webhook-secret ${app.id}`,
    )
  }
  const keys = signingKeys(ctx.keyring.open(app.webhookSecret, secretPlace('webhook_secret', app.apiKey)))
  const client = openGuardedClient({ allowInsecure: true })
  return {
    async send({ id, eventType, body }) {
      const timestamp = unixSeconds(ctx.clock.now())
      const { httpStatus, failure, durationMs, responseHead } = await client.post({
        ownerId: app.id,
        url,
        headers: webhookHeaders(keys, { eventId: id, eventType, attempt: 1, timestamp, body }),
        body,
        deadlineMs: ctx.config.webhook.timeoutMs,
      })
      const isAcknowledged = httpStatus !== null && httpStatus >= 200 && httpStatus < 300
      const error = failure ?? (isAcknowledged ? null : `http_${httpStatus ?? 'none'}`)
      return { http_status: httpStatus, error, duration_ms: durationMs, answer: responseHead }
    },
    close: () => client.close(),
  }
}

/** `evt_12`. */
export function eventIdOf({ id }: Event): string {
  return formatId('evt', id)
}
