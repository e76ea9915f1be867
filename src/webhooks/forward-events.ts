import type { App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { GuardedClient } from '#http/outbound/guarded-client.ts'
import { attemptDelivery } from './attempt-delivery.ts'
import { envelopeOf } from './envelope.ts'
import { openKeys, requireWebhookSecret } from './read-target.ts'
import type { Event } from './store.ts'

/** A local server's answer to an event. `error` is null if it acknowledged. */
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
 * Sends events to an address that the operator chooses, which may be on this machine, signed like real deliveries. Records nothing and does
 * not affect deliveries. Throws `invalid_request` if the app has no webhook secret.
 */
export function openForwarder(ctx: Context, app: App, url: string): Forwarder {
  const keys = openKeys(ctx, requireWebhookSecret(app), app.apiKey)
  const client = new GuardedClient({ allowInsecure: true })
  return {
    async send(event) {
      const { id, eventType } = event
      const sent = { id, appId: app.id, eventType, attempt: 1, body: envelopeOf(event) }
      const { httpStatus, error, durationMs, responseHead } = await attemptDelivery(ctx, client, { url, keys }, sent)
      return { http_status: httpStatus, error, duration_ms: durationMs, answer: responseHead }
    },
    close: () => client.close(),
  }
}
