import { Agent, type Dispatcher } from 'undici'
import { startDeadline } from '#shared/time.ts'
import { CONNECT_MS, KEEP_ALIVE_MS } from './connection-times.ts'
import { outboundFailureOf, type OutboundFailure } from './outbound-failure.ts'

/** Largest answer of a fixed endpoint. */
const ENDPOINT_BYTES = 1024 * 1024

export interface EndpointRequest {
  readonly method: 'GET' | 'PUT' | 'POST' | 'PATCH' | 'DELETE'
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
  /** From connection to last byte. */
  readonly deadlineMs: number
}

export interface EndpointAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: string
}

/** No whole answer came from an endpoint; `failure` says why. */
export class EndpointError extends Error {
  override readonly name = 'EndpointError'
  readonly failure: OutboundFailure

  constructor(failure: OutboundFailure, origin: string, cause: unknown) {
    super(`${origin} gave no answer: ${failure}`, { cause })
    this.failure = failure
  }
}

let endpointAgent: Agent | null = null

/**
 * Calls an endpoint that the operator configured, so its address needs no guard. Follows no redirect; every status is an answer. Throws
 * `EndpointError` if none came within the deadline, or if it is larger than 1 MiB.
 */
export async function requestEndpoint(request: EndpointRequest): Promise<EndpointAnswer> {
  const url = new URL(request.url)
  const deadline = new AbortController()
  const cancelDeadline = startDeadline(request.deadlineMs, () => deadline.abort())
  endpointAgent ??= new Agent({ connect: { timeout: CONNECT_MS }, allowH2: false, keepAliveTimeout: KEEP_ALIVE_MS })
  try {
    const response = await endpointAgent.request({
      origin: url.origin,
      path: url.pathname + url.search,
      method: request.method,
      headers: { ...request.headers, 'accept-encoding': 'identity' },
      body: request.body ?? null,
      signal: deadline.signal,
    })
    const body = await readWhole(response.body, ENDPOINT_BYTES)
    return { status: response.statusCode, headers: response.headers, body: body.toString('utf8') }
  } catch (error) {
    throw new EndpointError(deadline.signal.aborted ? 'timeout' : outboundFailureOf(error), url.origin, error)
  } finally {
    cancelDeadline()
  }
}

async function readWhole(body: Dispatcher.ResponseData['body'], maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of body as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > maxBytes) throw Object.assign(new Error('the answer is too large'), { code: 'UND_ERR_RES_TOO_LARGE' })
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
