import { WebhookError } from './errors.ts'
import { bytesOf, fromBase64, fromHex, isSigned } from './signature.ts'
import type { WebhookBody } from './types.ts'

/** An event. Its id, `evt_1`, is signed and the same for all delivery attempts: store it to skip events you have handled. */
export type WebhookEvent = WebhookBody

/** The headers as your framework provides them: a `Headers`, or an object with names in any case. */
export type WebhookHeaders =
  { get(name: string): string | null | undefined } | Readonly<Record<string, string | readonly string[] | undefined>>

export interface VerifyOptions {
  /** How far the timestamp may differ from the current time, either way; 300 by default. */
  readonly toleranceSeconds?: number
  /** Milliseconds since 1970, for tests; the current time by default. */
  readonly now?: number
}

const TOLERANCE_SECONDS = 300
const PREFIX = 'whsec_'

/** A delivery as it came. */
interface Received {
  readonly body: Uint8Array<ArrayBuffer>
  readonly header: (name: string) => string
  readonly isNear: (timestamp: string) => boolean
}

/**
 * Verifies a webhook and returns its event. `rawBody` is the body as received, before any parsing; `secret` is the whole `whsec_…` text, or
 * several of them while you change it. One valid signature is enough. Throws `WebhookError` if none is valid, the timestamp is too far
 * from now, or a header names another event than the signed body; and `TypeError` if a secret is missing or is none, or the body was parsed
 * already, which no sender can cause.
 */
export async function verifyWebhook(
  rawBody: string | Uint8Array | ArrayBuffer,
  headers: WebhookHeaders,
  secret: string | readonly string[],
  { toleranceSeconds = TOLERANCE_SECONDS, now = Date.now() }: VerifyOptions = {},
): Promise<WebhookEvent> {
  const secrets = secretsOf(secret)
  const received: Received = {
    body: bytesOfBody(rawBody),
    header: (name) => readHeader(headers, name),
    isNear: (timestamp) => /^\d{1,12}$/.test(timestamp) && Math.abs(now / 1000 - Number(timestamp)) <= toleranceSeconds,
  }
  const signedId = await verifySignature(received, secrets)
  return eventOf(received, signedId)
}

function secretsOf(secret: unknown): readonly string[] {
  const secrets: readonly unknown[] = Array.isArray(secret) ? secret : [secret]
  const isSecret = (one: unknown): one is string => typeof one === 'string' && /^whsec_./.test(one)
  if (secrets.length > 0 && secrets.every(isSecret)) return secrets
  throw new TypeError('the webhook secret is missing, or not the whole whsec_… text')
}

/** A buffer may be of another realm than this module, as in an edge runtime or a test. */
function bytesOfBody(rawBody: unknown): Uint8Array<ArrayBuffer> {
  if (typeof rawBody === 'string') return bytesOf(rawBody)
  if (ArrayBuffer.isView(rawBody))
    return bytesOf(new Uint8Array(rawBody.buffer, rawBody.byteOffset, rawBody.byteLength))
  if (Object.prototype.toString.call(rawBody) === '[object ArrayBuffer]')
    return bytesOf(new Uint8Array(rawBody as ArrayBuffer))
  throw new TypeError('verify needs the body as received, as text or bytes, before any parsing')
}

/** Returns the id that the Standard Webhooks signature covers; null if only the other signature is valid, which covers the body alone. */
async function verifySignature(received: Received, secrets: readonly string[]): Promise<string | null> {
  const { header, isNear } = received
  if (!isNear(header('webhook-timestamp')) && !isNear(header('x-gateway-timestamp'))) {
    throw new WebhookError('no timestamp is near the current time: check the clock, and pass all headers')
  }
  for (const secret of secrets) if (await isStandardValid(received, secret)) return header('webhook-id')
  for (const secret of secrets) if (await isOwnValid(received, secret)) return null
  throw new WebhookError('no valid signature: check that the secret is this app’s, and pass the body as received')
}

/** By Standard Webhooks: over the id, the timestamp and the body. */
async function isStandardValid({ body, header, isNear }: Received, secret: string): Promise<boolean> {
  const id = header('webhook-id')
  const timestamp = header('webhook-timestamp')
  const key = fromBase64(secret.slice(PREFIX.length))
  if (id === '' || !isNear(timestamp) || key === null) return false
  const content = bytesOf(`${id}.${timestamp}.`, body)
  for (const signature of header('webhook-signature').split(' ')) {
    if (signature.startsWith('v1,') && (await isSigned(key, fromBase64(signature.slice(3)), content))) return true
  }
  return false
}

/** By `X-Gateway-Signature`: over the timestamp and the body. */
async function isOwnValid({ body, header, isNear }: Received, secret: string): Promise<boolean> {
  const timestamp = header('x-gateway-timestamp')
  if (!isNear(timestamp)) return false
  return isSigned(bytesOf(secret), fromHex(header('x-gateway-signature')), bytesOf(`${timestamp}.`, body))
}

/** The event by its signed id: that of the body, or of Standard Webhooks if an earlier version wrote a body without one. */
function eventOf({ body, header }: Received, signedId: string | null): WebhookEvent {
  const content = contentOf(body)
  const id = content.id ?? signedId
  if (typeof id !== 'string' || id === '') throw new WebhookError('the event has no signed id: pass all headers')
  for (const name of ['webhook-id', 'x-gateway-event-id']) {
    const named = header(name)
    if (named !== '' && named !== id) throw new WebhookError(`${name} names another event than the signed ${id}`)
  }
  return { ...content, id } as WebhookEvent
}

function contentOf(body: Uint8Array): Omit<WebhookBody, 'id'> & { readonly id?: unknown } {
  try {
    return Object(JSON.parse(new TextDecoder().decode(body))) as Omit<WebhookBody, 'id'>
  } catch {
    throw new WebhookError('the signed body is no JSON')
  }
}

function readHeader(headers: WebhookHeaders, name: string): string {
  if (isHeaders(headers)) return headers.get(name) ?? ''
  const found = Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1]
  return typeof found === 'string' ? found : (found?.[0] ?? '')
}

/** Also one of another implementation of `fetch` than the runtime's. */
function isHeaders(headers: WebhookHeaders): headers is Extract<WebhookHeaders, { get: unknown }> {
  return typeof headers.get === 'function'
}
