import { Agent, type buildConnector } from 'undici'
import { BoundedMap } from '#shared/bounded-map.ts'
import { KEEP_ALIVE_MS } from './connection-times.ts'
import { Exchange, type GuardedPost, type PostOutcome, type Target } from './exchange.ts'
import { guardedConnector, type GuardOptions } from './guarded-connector.ts'
import type { OutboundFailure } from './outbound-failure.ts'

/**
 * Maximum number of agents kept, so that connections are reused; the least recently used is closed first. Apps may send in rotation: with
 * one app more than agents, no connection would ever be reused. An idle agent costs 4 KB.
 */
const MAX_AGENTS = 1024
/** Parsed addresses, of which an app may have had several. */
const MAX_TARGETS = 1024

/**
 * A client for addresses that sellers choose. It allows only https, and only public addresses, which it checks after name resolution and
 * again on the connection. No redirects, no proxy, no decompression, one deadline for everything, a bounded answer.
 */
export class GuardedClient {
  readonly #allowInsecure: boolean
  readonly #connect: buildConnector.connector
  /** By owner. A dropped agent's requests in flight end, without waiting for them. */
  readonly #agents = new BoundedMap<number, Agent>(MAX_AGENTS, (agent) => void agent.close().catch(() => undefined))
  /** By address. */
  readonly #targets = new BoundedMap<string, ParsedTarget>(MAX_TARGETS)
  readonly #underWay = new Set<Exchange>()
  #isInterrupted = false

  constructor(options: GuardOptions) {
    this.#allowInsecure = options.allowInsecure
    this.#connect = guardedConnector(options)
  }

  /** Never throws: anything that the receiver does becomes an outcome. */
  post(request: GuardedPost): Promise<PostOutcome> {
    const target = this.#targets.getOrCreate(request.url, () => readTarget(request.url, this.#allowInsecure))
    if (this.#isInterrupted || target.refusal) return Promise.resolve(refused(target.refusal ?? 'interrupted'))
    return new Promise((resolve) => {
      const exchange = new Exchange(request.deadlineMs, (outcome) => {
        this.#underWay.delete(exchange)
        resolve(outcome)
      })
      this.#underWay.add(exchange)
      exchange.begin(this.#agentOf(request.ownerId), target, request)
    })
  }

  /** Ends every post under way, and each that follows, as `interrupted`. */
  interrupt(): void {
    this.#isInterrupted = true
    for (const exchange of this.#underWay) exchange.breakOff('interrupted')
  }

  /** Drops all connections. */
  close(): void {
    // Does not wait, because a connection that is still being opened may take its whole time.
    for (const agent of this.#agents.values()) agent.destroy().catch(() => undefined)
    this.#agents.clear()
  }

  #agentOf(ownerId: number): Agent {
    const agent = this.#agents.get(ownerId) ?? openAgent(this.#connect)
    // Set at each use, so that the least recently used is dropped.
    this.#agents.set(ownerId, agent)
    return agent
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

/** An address, parsed once for many posts. `refusal`: why nothing is sent there. */
interface ParsedTarget extends Target {
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

/** The outcome of a post that was not sent. */
function refused(failure: OutboundFailure): PostOutcome {
  return { httpStatus: null, failure, responseHead: null, durationMs: 0 }
}
