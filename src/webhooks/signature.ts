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
    standard: standardKey(secret),
  }
}

/** The key of Standard Webhooks: the decoded base64 part of a secret, `whsec_…`. */
export function standardKey(secret: string): HmacKey {
  return hmacKey(Buffer.from(secret.replace(/^whsec_/, ''), 'base64'))
}

/** The headers by which the libraries of Standard Webhooks verify a message. `timestamp` in Unix seconds. */
export function standardHeaders(
  key: HmacKey,
  { id, timestamp, body }: { readonly id: string; readonly timestamp: number; readonly body: string | Buffer },
): Record<string, string> {
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': `v1,${hmacBase64(key, `${id}.${timestamp}.`, body)}`,
  }
}

/** The headers of a delivery (R152). */
export function webhookHeaders(keys: SigningKeys, delivery: Delivery): Record<string, string> {
  const { eventId, eventType, attempt, timestamp, body } = delivery
  const id = formatId('evt', eventId)
  return {
    'Content-Type': 'application/json',
    'User-Agent': USER_AGENT,
    'X-Gateway-Timestamp': String(timestamp),
    'X-Gateway-Signature': hmacHex(keys.gateway, `${timestamp}.`, body),
    'X-Gateway-Event-Id': id,
    'X-Gateway-Event-Type': eventType,
    'X-Gateway-Attempt': String(attempt),
    ...standardHeaders(keys.standard, { id, timestamp, body }),
  }
}
