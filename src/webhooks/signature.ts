import { hmacBase64, hmacHex } from '#shared/crypto.ts'
import { formatId } from '#shared/ids.ts'

const USER_AGENT = 'Paygate-Webhooks/1'

/** What one delivery attempt puts into its headers. */
export interface Delivery {
  readonly eventId: number
  readonly eventType: string
  /** 1 for the first attempt; replays count on. */
  readonly attempt: number
  /** Unix seconds of this attempt. */
  readonly timestamp: number
  /** The exact bytes that are sent. */
  readonly body: Buffer
}

/**
 * The headers of a delivery (specification 6, contract 4). `secret` is the app's webhook secret as it was shown, `whsec_…`: as a
 * whole it is the key of `X-Gateway-Signature`; its base64 part, decoded, is the key of the Standard Webhooks signature.
 */
export function webhookHeaders(secret: string, delivery: Delivery): Record<string, string> {
  const { eventId, eventType, attempt, body } = delivery
  const id = formatId('evt', eventId)
  const timestamp = String(delivery.timestamp)
  return {
    'Content-Type': 'application/json',
    'User-Agent': USER_AGENT,
    'X-Gateway-Timestamp': timestamp,
    'X-Gateway-Signature': hmacHex(secret, `${timestamp}.`, body),
    'X-Gateway-Event-Id': id,
    'X-Gateway-Event-Type': eventType,
    'X-Gateway-Attempt': String(attempt),
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${hmacBase64(standardKey(secret), `${id}.${timestamp}.`, body)}`,
  }
}

function standardKey(secret: string): Buffer {
  return Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
}
