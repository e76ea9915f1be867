import { hmacBase64, hmacHex, hmacKey, type HmacKey } from '#shared/crypto.ts'
import { formatId } from '#shared/ids.ts'

const USER_AGENT = 'Paygate-Webhooks/1'

/** The parts of a delivery attempt that its headers contain. */
export interface Delivery {
  readonly eventId: number
  readonly eventType: string
  /** 1 for the first attempt. Replays continue the count. */
  readonly attempt: number
  /** Unix seconds of this attempt. */
  readonly timestamp: number
  /** The exact bytes of the request. */
  readonly body: Buffer
}

/** The keys of both signatures, made once for many deliveries. */
export interface SigningKeys {
  /** For `X-Gateway-Signature`. */
  readonly gateway: HmacKey
  /** For the Standard Webhooks signature. */
  readonly standard: HmacKey
}

/** `secret` is the app's webhook secret, `whsec_…`. One key is the whole text, the other its decoded base64 part. */
export function signingKeys(secret: string): SigningKeys {
  return {
    gateway: hmacKey(Buffer.from(secret)),
    standard: hmacKey(Buffer.from(secret.replace(/^whsec_/, ''), 'base64')),
  }
}

/** The headers of a delivery (R152). */
export function webhookHeaders(keys: SigningKeys, delivery: Delivery): Record<string, string> {
  const { eventId, eventType, attempt, body } = delivery
  const id = formatId('evt', eventId)
  const timestamp = String(delivery.timestamp)
  return {
    'Content-Type': 'application/json',
    'User-Agent': USER_AGENT,
    'X-Gateway-Timestamp': timestamp,
    'X-Gateway-Signature': hmacHex(keys.gateway, `${timestamp}.`, body),
    'X-Gateway-Event-Id': id,
    'X-Gateway-Event-Type': eventType,
    'X-Gateway-Attempt': String(attempt),
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${hmacBase64(keys.standard, `${id}.${timestamp}.`, body)}`,
  }
}
