import { WebhookError } from './errors.ts'
import { bytesOf, fromBase64, fromHex, isSigned } from './signature.ts'
import type { WebhookBody } from './types.ts'

/** An event with its id, `evt_1`, which is the same for all delivery attempts: store it to skip events you have handled. */
export type WebhookEvent = WebhookBody & { readonly id: string }

/** The headers as your framework provides them: a `Headers`, or an object with lower-case names. */
export type WebhookHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>

export interface VerifyOptions {
  /** How far the timestamp may differ from the current time, either way; 300 by default. */
  readonly toleranceSeconds?: number
  /** Milliseconds since 1970, for tests; the current time by default. */
  readonly now?: number
}

const TOLERANCE_SECONDS = 300

/**
 * Verifies a webhook and returns its event. `rawBody` is the body as received, before any parsing; `secret` is the whole `whsec_…` text.
 * One valid signature of the two is enough. Throws `WebhookError` if neither is valid, or the timestamp is too far from now.
 */
export async function verifyWebhook(
  rawBody: string | Uint8Array | ArrayBuffer,
  headers: WebhookHeaders,
  secret: string,
  { toleranceSeconds = TOLERANCE_SECONDS, now = Date.now() }: VerifyOptions = {},
): Promise<WebhookEvent> {
  if (!secret.startsWith('whsec_')) throw new WebhookError('the secret must be the whole whsec_… text')
  const body = bytesOf(rawBody instanceof ArrayBuffer ? new Uint8Array(rawBody) : rawBody)
  const header = (name: string): string => readHeader(headers, name)
  const isNear = (timestamp: string): boolean =>
    /^\d{1,12}$/.test(timestamp) && Math.abs(now / 1000 - Number(timestamp)) <= toleranceSeconds
  const own = { id: header('x-gateway-event-id'), timestamp: header('x-gateway-timestamp') }
  const standard = { id: header('webhook-id'), timestamp: header('webhook-timestamp') }
  if (!isNear(own.timestamp) && !isNear(standard.timestamp)) {
    throw new WebhookError('no timestamp is near the current time: check the clock, and pass all headers')
  }
  if (isNear(own.timestamp)) {
    const content = bytesOf(`${own.timestamp}.`, body)
    if (await isSigned(bytesOf(secret), fromHex(header('x-gateway-signature')), content)) return eventOf(own.id, body)
  }
  const key = fromBase64(secret.slice('whsec_'.length))
  if (isNear(standard.timestamp) && key !== null) {
    const content = bytesOf(`${standard.id}.${standard.timestamp}.`, body)
    for (const signature of header('webhook-signature').split(' ')) {
      if (!signature.startsWith('v1,')) continue
      if (await isSigned(key, fromBase64(signature.slice(3)), content)) return eventOf(standard.id, body)
    }
  }
  throw new WebhookError('no valid signature: check that the secret is this app’s, and pass the body as received')
}

function eventOf(id: string, body: Uint8Array): WebhookEvent {
  return { ...(JSON.parse(new TextDecoder().decode(body)) as WebhookBody), id }
}

function readHeader(headers: WebhookHeaders, name: string): string {
  if (headers instanceof Headers) return headers.get(name) ?? ''
  const value = headers[name]
  return typeof value === 'string' ? value : (value?.[0] ?? '')
}
