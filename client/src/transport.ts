import { ApiError, ConnectionError, PaygateError } from './errors.ts'
import { bytesOf, sign, toHex } from './signature.ts'
import type { ErrorBody } from './types.ts'

export interface TransportOptions {
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
  readonly idempotencyKey?: string
  /** Ends the call early. */
  readonly signal?: AbortSignal
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
  const key = call.method === 'POST' || call.method === 'PUT' ? (call.idempotencyKey ?? crypto.randomUUID()) : null
  for (let attempt = 0; ; attempt += 1) {
    const outcome = await attemptOf(options, call, key)
    if (!('failure' in outcome)) return outcome
    const { failure, retryAfterSeconds } = outcome
    if (attempt >= options.maxRetries || !isRetryable(outcome)) throw failure
    await wait(retryAfterSeconds === null ? waitOf(attempt) : retryAfterSeconds * 1000, call.signal)
  }
}

interface Failure {
  readonly failure: ApiError | ConnectionError
  readonly retryAfterSeconds: number | null
}

async function attemptOf(options: TransportOptions, call: Call, key: string | null): Promise<Success | Failure> {
  const { baseUrl, apiKey, apiSecret, timeoutMs } = options
  const target = targetOf(call)
  const url = new URL(baseUrl.replace(/\/+$/, '') + target)
  const body = call.body === undefined ? '' : JSON.stringify(call.body)
  const timestamp = String(Math.floor(Date.now() / 1000))
  // A path in the base address belongs to a proxy: the service verifies what it receives, which begins at /api.
  const content = bytesOf(`${timestamp}.${call.method}.${target}.${body}`)
  const headers = {
    'X-App-Key': apiKey,
    'X-Timestamp': timestamp,
    'X-Signature': toHex(await sign(bytesOf(apiSecret), content)),
    ...(body === '' ? {} : { 'Content-Type': 'application/json' }),
    ...(key === null ? {} : { 'Idempotency-Key': key }),
  }
  const timeout = AbortSignal.timeout(timeoutMs)
  const signal = call.signal ? AbortSignal.any([call.signal, timeout]) : timeout
  try {
    const { fetch } = options
    // Key, signature and body are for this service alone: they do not follow a redirect.
    const request = { method: call.method, headers, signal, redirect: 'error' } as const
    const answer = await fetch(url, { ...request, ...(body === '' ? {} : { body }) })
    return await readAnswer(answer)
  } catch (error) {
    if (call.signal?.aborted) throw error
    const reason = timeout.aborted ? `no answer in ${timeoutMs} ms` : `the service cannot be reached${causeOf(error)}`
    return {
      failure: new ConnectionError(`${call.method} /${call.path.join('/')}: ${reason}`, { cause: error }),
      retryAfterSeconds: null,
    }
  }
}

/** What the runtime says is the cause, such as an unexpected redirect. */
function causeOf(error: unknown): string {
  const cause = error instanceof Error ? (error.cause ?? error) : null
  return cause instanceof Error && cause.message !== '' ? ` (${cause.message})` : ''
}

async function readAnswer(answer: Response): Promise<Success | Failure> {
  const text = await answer.text()
  if (answer.ok) return JSON.parse(text) as Success
  const seconds = Number(answer.headers.get('Retry-After') ?? NaN)
  return {
    failure: new ApiError(answer.status, errorOf(text)),
    retryAfterSeconds: Number.isFinite(seconds) ? seconds : null,
  }
}

/** Null if a proxy answered instead of the service. */
function errorOf(text: string): ErrorBody['error'] | null {
  try {
    return (JSON.parse(text) as Partial<ErrorBody>).error ?? null
  } catch {
    return null
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

function wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      clearTimeout(timer)
      reject(signal?.reason as Error)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort)
      resolve()
    }, ms)
    if (signal?.aborted) abort()
    else signal?.addEventListener('abort', abort, { once: true })
  })
}
