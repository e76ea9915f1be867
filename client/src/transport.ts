import { ApiError, ConnectionError, PaygateError } from './errors.ts'
import { pause } from './pause.ts'
import { bytesOf, sign, toHex } from './signature.ts'
import type { ErrorBody } from './types.ts'
import { VERSION } from './version.ts'

export interface TransportOptions {
  /** Without `/api/v1` and without a slash at its end. */
  readonly baseUrl: string
  readonly apiKey: string
  readonly apiSecret: string
  readonly timeoutMs: number
  readonly maxRetries: number
  readonly fetch: typeof fetch
}

/** Options of one call. */
export interface CallOptions {
  /** Lets you repeat a POST or PUT safely, for example after a restart. Without one, each call gets a random key. */
  readonly idempotencyKey?: string | undefined
  /** How long one attempt of this call may take. */
  readonly timeoutMs?: number | undefined
  /** Ends the call early. */
  readonly signal?: AbortSignal | undefined
}

export interface Call extends CallOptions {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH'
  /** The parts of the path behind `/api/v1`. */
  readonly path: readonly string[]
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>
  readonly body?: unknown
}

/** The body of a successful response. */
export interface Success {
  readonly data: unknown
  readonly next_cursor?: string | null
}

const FIRST_WAIT_MS = 250
const LONGEST_WAIT_MS = 8000
/** A caller should not be kept waiting for longer: such a `Retry-After` is an error at once. */
const LONGEST_RETRY_AFTER_SECONDS = 60

/**
 * Sends a call, with a new signature for each attempt. It retries when no response came, and after 429, 5xx, and the conflict with an
 * attempt that is still running. The idempotency key of each POST and PUT makes that safe. Throws `ApiError` or `ConnectionError`.
 */
export async function send(options: TransportOptions, call: Call): Promise<Success> {
  const key = call.method === 'POST' || call.method === 'PUT' ? keyOf(call) : null
  for (let attempt = 0; ; attempt += 1) {
    const outcome = await attemptOf(options, call, key)
    if (!('failure' in outcome)) return outcome
    const { failure, retryAfterSeconds } = outcome
    if (attempt >= options.maxRetries || !isRetryable(outcome)) throw failure
    await pause(retryAfterSeconds === null ? waitOf(attempt) : retryAfterSeconds * 1000, call.signal)
  }
}

/** Throws `PaygateError` for a key that no header can hold, which `fetch` would report as a service that cannot be reached. */
function keyOf({ idempotencyKey }: Call): string {
  const key = idempotencyKey ?? crypto.randomUUID()
  if (/^[\x20-\x7e]+$/.test(key)) return key
  throw new PaygateError(
    `an idempotencyKey is 1 to 255 printable ASCII characters, as encodeURIComponent writes them: it is "${key}"`,
  )
}

interface Failure {
  readonly failure: ApiError | ConnectionError
  readonly retryAfterSeconds: number | null
}

async function attemptOf(options: TransportOptions, call: Call, key: string | null): Promise<Success | Failure> {
  const { timeoutMs = options.timeoutMs } = call
  const { url, init } = await requestOf(options, call, key)
  const timeout = AbortSignal.timeout(timeoutMs)
  const signal = call.signal ? AbortSignal.any([call.signal, timeout]) : timeout
  try {
    const { fetch } = options
    const answer = await fetch(url, { ...init, signal })
    return readAnswer(answer, await answer.text(), `${nameOf(call)}: ${new URL(url).origin}`)
  } catch (error) {
    if (call.signal?.aborted) throw error
    const reason = timeout.aborted ? `no answer in ${timeoutMs} ms` : `the service cannot be reached${causeOf(error)}`
    return {
      failure: new ConnectionError(`${nameOf(call)}: ${reason}`, { cause: error }),
      retryAfterSeconds: null,
    }
  }
}

function nameOf({ method, path }: Call): string {
  return `${method} /${path.join('/')}`
}

interface SignedRequest {
  readonly url: string
  readonly init: RequestInit
}

async function requestOf(options: TransportOptions, call: Call, key: string | null): Promise<SignedRequest> {
  const target = targetOf(call)
  const body = call.body === undefined ? '' : JSON.stringify(call.body)
  const headers = {
    ...(await signedHeaders(options, call.method, target, body)),
    ...(key === null ? {} : { 'Idempotency-Key': key }),
  }
  // Key, signature and body are for this service alone: they do not follow a redirect.
  const init = { method: call.method, headers, redirect: 'manual', ...(body === '' ? {} : { body }) } as const
  return { url: options.baseUrl + target, init }
}

/** The headers of a call that is sent now. A path in the base address belongs to a proxy: the service verifies what it receives, which begins at `/api`. */
export async function signedHeaders(
  { apiKey, apiSecret }: Pick<TransportOptions, 'apiKey' | 'apiSecret'>,
  method: string,
  target: string,
  body: string,
): Promise<Record<string, string>> {
  const timestamp = String(Math.floor(Date.now() / 1000))
  return {
    'X-App-Key': apiKey,
    'X-Timestamp': timestamp,
    'X-Signature': toHex(await sign(bytesOf(apiSecret), bytesOf(`${timestamp}.${method}.${target}.${body}`))),
    'User-Agent': `paygate-client/${VERSION}`,
    ...(body === '' ? {} : { 'Content-Type': 'application/json' }),
  }
}

/** What the runtime says is the cause, such as a name that does not resolve. */
export function causeOf(error: unknown): string {
  const cause = error instanceof Error ? (error.cause ?? error) : null
  return cause instanceof Error && cause.message !== '' ? ` (${cause.message})` : ''
}

/** `who` begins the message where something else than the API answered. */
function readAnswer(answer: Response, text: string, who: string): Success | Failure {
  const content = parsed(text)
  if (answer.ok && content.success === true && 'data' in content) return content
  const seconds = Number(answer.headers.get('Retry-After') ?? NaN)
  const unexpected = { code: 'unexpected_response', message: `${who} ${describeAnswer(answer)}` } as const
  const isRefusal = !answer.ok && typeof content.error?.code === 'string'
  return {
    failure: new ApiError(answer.status, isRefusal ? (content.error ?? unexpected) : unexpected),
    retryAfterSeconds: Number.isFinite(seconds) ? seconds : null,
  }
}

function describeAnswer({ status, type, headers }: Response): string {
  if (type === 'opaqueredirect' || (status >= 300 && status < 400)) {
    const to = headers.get('Location')
    return `redirects${to === null ? '' : ` to ${to}`}, which is not followed: check baseUrl`
  }
  const what = headers.get('Content-Type')?.split(';')[0] ?? 'no content type'
  return `answered ${status} with ${what}, not as the API does: check baseUrl`
}

interface Content {
  readonly success?: unknown
  readonly error?: ErrorBody['error']
}

/** Empty if it is not a JSON object. */
function parsed(text: string): Content {
  try {
    return Object(JSON.parse(text)) as Content
  } catch {
    return {}
  }
}

function isRetryable({ failure, retryAfterSeconds }: Failure): boolean {
  if (failure instanceof ConnectionError) return true
  if (retryAfterSeconds !== null && retryAfterSeconds > LONGEST_RETRY_AFTER_SECONDS) return false
  // A conflict with a Retry-After is with an attempt that is still running; any other conflict is permanent.
  return failure.status === 429 || failure.status >= 500 || (failure.status === 409 && retryAfterSeconds !== null)
}

function targetOf({ path, query = {} }: Call): string {
  for (const part of path) checkPathPart(part)
  const entries = Object.entries(query).filter(([, value]) => value !== undefined)
  const search = new URLSearchParams(entries.map(([name, value]): [string, string] => [name, String(value)])).toString()
  return `/api/v1/${path.map(encodeURIComponent).join('/')}${search === '' ? '' : `?${search}`}`
}

/** Throws `PaygateError` for an id or an `external_ref` that would name another path: URLs resolve `.` and `..`, encoded ones too. */
export function checkPathPart(part: string): void {
  if (part === '' || part === '.' || part === '..')
    throw new PaygateError(`an external_ref or an id must not be empty, . or ..: it is "${part}"`)
}

/** Exponential, with jitter. */
function waitOf(attempt: number): number {
  return Math.min(FIRST_WAIT_MS * 2 ** attempt, LONGEST_WAIT_MS) * (0.5 + Math.random() / 2)
}

/** Without `/api/v1`, which every call adds. Throws `TypeError` for what is no address. */
export function rootOf(baseUrl: unknown): string {
  const isAddress = typeof baseUrl === 'string' && /^https?:\/\//i.test(baseUrl) && URL.canParse(baseUrl)
  if (!isAddress) throw new TypeError('baseUrl must be the address of the service, such as https://billing.example.com')
  return baseUrl
    .replace(/\/+$/, '')
    .replace(/\/api\/v1$/, '')
    .replace(/\/+$/, '')
}
