import { WebhookError } from './errors.ts'
import { bytesOf, fromBase64, fromHex, isSigned } from './signature.ts'
import type { WebhookBody } from './types.ts'

/** An event with its id, `evt_1`, which is the same over all attempts: keep it to notice what you have handled. */
export type WebhookEvent = WebhookBody & { readonly id: string }

/** The headers as your framework gives them: a `Headers`, or an object with names in lower case. */
export type WebhookHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>

export interface VerifyOptions {
  /** How far the timestamp may be from now, either way; 300 by default. */
  readonly toleranceSeconds?: number
  /** Milliseconds since 1970; the present time by default. For tests. */
  readonly now?: number
}

const TOLERANCE_SECONDS = 300

/**
 * The event of a webhook that Paygate sent. `rawBody` is the body as it came, before anything parsed it; `secret` is the whole
 * `whsec_…`. Either of the two signatures is enough. Throws `WebhookError` where none is right, or the timestamp is not near.
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
    throw new WebhookError('there is no timestamp near the present time: compare the clocks, and pass all headers')
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
  throw new WebhookError('no signature is right: is this the secret of this app, and the body as it came?')
}

function eventOf(id: string, body: Uint8Array): WebhookEvent {
  return { ...(JSON.parse(new TextDecoder().decode(body)) as WebhookBody), id }
}

function readHeader(headers: WebhookHeaders, name: string): string {
  if (headers instanceof Headers) return headers.get(name) ?? ''
  const value = headers[name]
  return typeof value === 'string' ? value : (value?.[0] ?? '')
}
