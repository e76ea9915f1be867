import { isIP, type LookupFunction } from 'node:net'
import { Agent, buildConnector, errors, type Dispatcher } from 'undici'
import { isBlockedAddress } from './blocked-address.ts'
import { resolveHost, type ResolveHost } from './resolve-host.ts'

/** Time for name resolution, connection and TLS, within the deadline of the whole attempt. */
const CONNECT_MS = 5000
/** How much of an answer's body is read, and how much of that is kept. */
const READ_BYTES = 16 * 1024
export const HEAD_BYTES = 2 * 1024
/** A response may be preceded by informational ones (RFC 9110, 15.2), but not by a flood of them. */
const MAX_INFORMATIONAL = 20
/**
 * Maximum number of agents kept, so that connections are reused; the least recently used is closed first. Apps may send in rotation: with
 * one app more than agents, no connection would ever be reused. An idle agent costs 4 KB.
 */
const MAX_AGENTS = 1024
/** Short: a receiver that closes an idle connection just when we send costs an attempt. */
const KEEP_ALIVE_MS = 1000
/** Largest answer of a fixed endpoint. */
const ENDPOINT_BYTES = 1024 * 1024

/** Why no answer came. `blocked_address`: the receiver is not on the public internet (R157). */
export type OutboundFailure =
  | 'blocked_address'
  | 'insecure_url'
  | 'invalid_url'
  | 'unknown_host'
  | 'connection_refused'
  | 'unreachable'
  | 'tls_failed'
  | 'timeout'
  | 'connection_lost'
  | 'invalid_response'
  | 'interrupted'
  | 'failed'

export interface GuardedPost {
  /** The owner of the receiver. Owners never share connections. */
  readonly ownerId: number
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
  /** From the start of name resolution to the last byte of the answer. */
  readonly deadlineMs: number
}

/**
 * The outcome of a post: the answer's status, or why there is none. A status together with `timeout` means that the rest of the answer did
 * not arrive.
 */
export interface PostOutcome {
  readonly httpStatus: number | null
  readonly failure: OutboundFailure | null
  /** The beginning of the answer's body: at most 2 KiB of UTF-8 without control characters. */
  readonly responseHead: string | null
  readonly durationMs: number
}

export interface GuardedClient {
  /** Never throws: anything that the receiver does becomes an outcome. */
  post(request: GuardedPost): Promise<PostOutcome>
  /** Ends every post under way, and each that follows, as `interrupted`. */
  interrupt(): void
  /** Drops all connections. */
  close(): void
}

export interface GuardOptions {
  /** Allows `http:` and receivers that are not public (`BILLING_WEBHOOK_ALLOW_INSECURE`). */
  readonly allowInsecure: boolean
  readonly resolve?: ResolveHost
  /** Replaces the rule that `allowInsecure` selects. */
  readonly isBlocked?: (address: string) => boolean
}

/**
 * A client for addresses that sellers choose. It allows only https, and only public addresses, which it checks after name resolution and
 * again on the connection. No redirects, no proxy, no decompression, one deadline for everything, a bounded answer.
 */
export function openGuardedClient(options: GuardOptions): GuardedClient {
  const agents = new Map<number, Agent>()
  const connect = guardedConnector(options)
  const targets = new Map<string, ParsedTarget>()
  const underWay = new Set<Exchange>()
  let isInterrupted = false

  const agentOf = (ownerId: number): Agent => {
    const agent = agents.get(ownerId) ?? openAgent(connect)
    // Set again, so that the map is in the order of last use.
    agents.delete(ownerId)
    agents.set(ownerId, agent)
    if (agents.size > MAX_AGENTS) closeOldest(agents)
    return agent
  }

  const targetOf = (url: string): ParsedTarget => {
    const target = targets.get(url) ?? readTarget(url, options.allowInsecure)
    if (targets.size > MAX_AGENTS) targets.clear()
    targets.set(url, target)
    return target
  }

  return {
    post(request) {
      const target = targetOf(request.url)
      if (isInterrupted || target.refusal) return Promise.resolve(refused(target.refusal ?? 'interrupted'))
      return new Promise((resolve) => {
        const exchange = new Exchange(request.deadlineMs, (outcome) => {
          underWay.delete(exchange)
          resolve(outcome)
        })
        underWay.add(exchange)
        exchange.begin(agentOf(request.ownerId), target, request)
      })
    },
    interrupt() {
      isInterrupted = true
      for (const exchange of underWay) exchange.breakOff('interrupted')
    },
    close() {
      // Does not wait, because a connection that is still being opened may take its whole time.
      for (const agent of agents.values()) agent.destroy().catch(() => undefined)
      agents.clear()
    },
  }
}

function openAgent(connect: buildConnector.connector): Agent {
  return new Agent({
    connect,
    allowH2: false,
    pipelining: 1,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
    headersTimeout: 0,
    bodyTimeout: 0,
  })
}

function closeOldest(agents: Map<number, Agent>): void {
  const [oldest] = agents
  if (!oldest) return
  agents.delete(oldest[0])
  // Lets requests in flight end, without waiting for them.
  oldest[1].close().catch(() => undefined)
}

/** An address, parsed once for many posts. `refusal`: why nothing is sent there. */
interface ParsedTarget {
  readonly origin: string
  readonly path: string
  readonly refusal: OutboundFailure | null
}

function readTarget(address: string, allowInsecure: boolean): ParsedTarget {
  const url = URL.parse(address)
  if (!url) return { origin: '', path: '', refusal: 'invalid_url' }
  return { origin: url.origin, path: url.pathname + url.search, refusal: refusalOf(url, allowInsecure) }
}

function refusalOf({ protocol, username, password }: URL, allowInsecure: boolean): OutboundFailure | null {
  if (username !== '' || password !== '') return 'invalid_url'
  if (protocol === 'https:') return null
  if (protocol !== 'http:') return 'invalid_url'
  return allowInsecure ? null : 'insecure_url'
}

/** Connects to checked addresses only. */
function guardedConnector(options: GuardOptions): buildConnector.connector {
  const resolve = options.resolve ?? resolveHost
  const isBlocked = options.isBlocked ?? (options.allowInsecure ? () => false : isBlockedAddress)
  const connect = buildConnector({ allowH2: false, timeout: CONNECT_MS, lookup: checkedLookup(resolve, isBlocked) })
  return (target, callback) => {
    // Node looks up names only, so an address in the URL must be checked here.
    const literal = target.hostname.replace(/^\[|\]$/g, '')
    if (isIP(literal) !== 0 && isBlocked(literal)) {
      callback(new BlockedAddressError(literal), null)
      return
    }
    connect(target, (...[error, socket]) => {
      if (error) {
        callback(error, null)
      } else if (isBlocked(socket.remoteAddress ?? '')) {
        socket.destroy()
        callback(new BlockedAddressError(socket.remoteAddress ?? 'unknown'), null)
      } else {
        callback(null, socket)
      }
    })
  }
}

/** One blocked address blocks the whole name: a name that resolves both to the internet and to our network is an attack. */
function checkedLookup(resolve: ResolveHost, isBlocked: (address: string) => boolean): LookupFunction {
  return (hostname, { all }, callback) => {
    resolve(hostname).then(
      (addresses) => {
        const blocked = addresses.find(isBlocked)
        const [first] = addresses
        if (blocked !== undefined) callback(new BlockedAddressError(blocked), [])
        else if (first === undefined) callback(Object.assign(new Error('no address'), { code: 'ENOTFOUND' }), [])
        else if (all)
          callback(
            null,
            addresses.map((address) => ({ address, family: isIP(address) })),
          )
        else callback(null, first, isIP(first))
      },
      (error: unknown) => callback(error as NodeJS.ErrnoException, []),
    )
  }
}

class BlockedAddressError extends Error {
  override readonly name = 'BlockedAddressError'
  readonly code = 'blocked_address'

  constructor(address: string) {
    super(`${address} is not a public address`)
  }
}

/** The outcome of a post that was not sent. */
function refused(failure: OutboundFailure): PostOutcome {
  return { httpStatus: null, failure, responseHead: null, durationMs: 0 }
}

/**
 * One attempt under way: gathers the answer, and ends at the deadline, by an interruption, or when enough is read. Uses undici's handler
 * rather than its streams: most answers have no body, and a stream costs half of the whole attempt. It is a class, because closures for
 * each attempt would cost more than their work.
 */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #startedMs = performance.now()
  readonly #timer: NodeJS.Timeout
  readonly #onEnd: (outcome: PostOutcome) => void
  #chunks: Buffer[] | null = null
  #size = 0
  #httpStatus: number | null = null
  #informational = 0
  #isOver = false
  #controller: Dispatcher.DispatchController | null = null

  constructor(deadlineMs: number, onEnd: (outcome: PostOutcome) => void) {
    this.#onEnd = onEnd
    this.#timer = setTimeout(() => this.breakOff('timeout'), deadlineMs)
  }

  begin(agent: Agent, { origin, path }: ParsedTarget, { headers, body }: GuardedPost): void {
    const options = {
      origin,
      path,
      method: 'POST',
      headers: { ...headers, 'accept-encoding': 'identity' },
      body,
    } as const
    try {
      agent.dispatch(options, this)
    } catch (error) {
      this.#end(failureOf(error))
    }
  }

  breakOff(failure: OutboundFailure): void {
    this.#end(failure)
    this.#controller?.abort(new Error(failure))
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    // The attempt ended before there was a connection: send nothing.
    if (this.#isOver) controller.abort(new Error('over'))
  }

  onResponseStart(_controller: Dispatcher.DispatchController, statusCode: number): void {
    if (statusCode >= 200) {
      this.#httpStatus = statusCode
      return
    }
    this.#informational += 1
    if (this.#informational > MAX_INFORMATIONAL) this.breakOff('invalid_response')
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#chunks ??= []
    this.#chunks.push(Buffer.from(chunk))
    this.#size += chunk.length
    if (this.#size >= READ_BYTES) this.breakOff('invalid_response')
  }

  onResponseEnd(): void {
    this.#end(null)
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#end(failureOf(error))
  }

  /** A status line counts as an answer, even if the body is lost; only the deadline applies to the whole answer. */
  #end(failure: OutboundFailure | null): void {
    if (this.#isOver) return
    this.#isOver = true
    clearTimeout(this.#timer)
    const durationMs = Math.round(performance.now() - this.#startedMs)
    const httpStatus = this.#httpStatus
    if (httpStatus === null) {
      this.#onEnd({ httpStatus, failure: failure ?? 'failed', responseHead: null, durationMs })
    } else {
      const responseHead = this.#chunks ? cleanText(Buffer.concat(this.#chunks), HEAD_BYTES) : ''
      this.#onEnd({ httpStatus, failure: failure === 'timeout' ? failure : null, responseHead, durationMs })
    }
  }
}

/** The first bytes as UTF-8 text, at most `maxBytes` long, without control characters other than line breaks and tabs. */
export function cleanText(bytes: Buffer, maxBytes: number): string {
  const text = new TextDecoder().decode(bytes.subarray(0, maxBytes), { stream: true })
  const clean = text.replace(/[^\P{Cc}\n\t]/gu, '')
  // An invalid byte became three bytes, so the text may be longer than the input.
  return new TextDecoder().decode(Buffer.from(clean).subarray(0, maxBytes), { stream: true })
}

const FAILURE_OF_CODE: readonly (readonly [RegExp, OutboundFailure])[] = [
  [/^blocked_address$/, 'blocked_address'],
  [/^(ENOTFOUND|ENODATA|EAI_\w+|ESERVFAIL|EBADNAME|ETIMEOUT)$/, 'unknown_host'],
  [/^ECONNREFUSED$/, 'connection_refused'],
  [/^(EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|ENETDOWN)$/, 'unreachable'],
  [/^(UND_ERR_CONNECT_TIMEOUT|UND_ERR_HEADERS_TIMEOUT|UND_ERR_BODY_TIMEOUT|ETIMEDOUT)$/, 'timeout'],
  [/^(EPROTO|ERR_TLS_|ERR_SSL_|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|HOSTNAME_MISMATCH)/, 'tls_failed'],
  [/^(HPE_|UND_ERR_HEADERS_OVERFLOW|UND_ERR_RES_)/, 'invalid_response'],
  [/^(ECONNRESET|EPIPE|UND_ERR_SOCKET)$/, 'connection_lost'],
]

function failureOf(error: unknown): OutboundFailure {
  if (error instanceof errors.HTTPParserError) return 'invalid_response'
  const { code, cause } = error as { code?: unknown; cause?: unknown }
  const known = FAILURE_OF_CODE.find(([pattern]) => typeof code === 'string' && pattern.test(code))
  if (known) return known[1]
  return cause instanceof Error ? failureOf(cause) : 'failed'
}

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
  const deadline = AbortSignal.timeout(request.deadlineMs)
  endpointAgent ??= new Agent({ connect: { timeout: CONNECT_MS }, allowH2: false, keepAliveTimeout: KEEP_ALIVE_MS })
  try {
    const response = await endpointAgent.request({
      origin: url.origin,
      path: url.pathname + url.search,
      method: request.method,
      headers: { ...request.headers, 'accept-encoding': 'identity' },
      body: request.body ?? null,
      signal: deadline,
    })
    const body = await readWhole(response.body, ENDPOINT_BYTES)
    return { status: response.statusCode, headers: response.headers, body: body.toString('utf8') }
  } catch (error) {
    throw new EndpointError(deadline.aborted ? 'timeout' : failureOf(error), url.origin, error)
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
