import { bytesOf, fromBase64, sign, toBase64, toHex } from './signature.ts'
import type { WebhookBody } from './types.ts'

/** A webhook as Paygate would send it. */
export interface SignedWebhook {
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
}

/** An event that may leave out its id. */
export type UnsignedEvent<Body = WebhookBody> = Body extends unknown
  ? Omit<Body, 'id'> & { readonly id?: string }
  : never

/**
 * Signs an event as Paygate does, for tests of your receiver; without an id it is `evt_1`. `secret` is `whsec_` followed by any base64; `now` is in milliseconds since
 * 1970.
 */
export async function signWebhook(
  event: UnsignedEvent,
  secret: string,
  now: number = Date.now(),
): Promise<SignedWebhook> {
  const { id = 'evt_1', ...content } = event
  const body = JSON.stringify({ id, ...content })
  const timestamp = String(Math.floor(now / 1000))
  const key = fromBase64(secret.replace(/^whsec_/, '')) ?? bytesOf('')
  return {
    body,
    headers: {
      'content-type': 'application/json',
      'user-agent': 'Paygate-Webhooks/1',
      'x-gateway-event-id': id,
      'x-gateway-event-type': content.event_type,
      'x-gateway-attempt': '1',
      'x-gateway-timestamp': timestamp,
      'x-gateway-signature': toHex(await sign(bytesOf(secret), bytesOf(`${timestamp}.${body}`))),
      'webhook-id': id,
      'webhook-timestamp': timestamp,
      'webhook-signature': `v1,${toBase64(await sign(key, bytesOf(`${id}.${timestamp}.${body}`)))}`,
    },
  }
}
