import { secretPlace, type App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { GuardedClient } from '#http/outbound/guarded-client.ts'
import { AppError } from '#shared/errors.ts'
import { attemptDelivery } from './attempt-delivery.ts'
import { envelopeOf } from './envelope.ts'
import { signingKeys } from './signature.ts'
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
  if (app.webhookSecret === null) {
    throw new AppError(
      'invalid_request',
      `app ${app.id} has no webhook secret: billing-cli app rotate-webhook-secret ${app.id}`,
    )
  }
  const keys = signingKeys(ctx.keyring.open(app.webhookSecret, secretPlace('webhook_secret', app.apiKey)))
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
