import { Agent, type buildConnector } from 'undici'
import { KEEP_ALIVE_MS } from './connection-times.ts'
import { Exchange, type GuardedPost, type PostOutcome, type Target } from './exchange.ts'
import { guardedConnector, type GuardOptions } from './guarded-connector.ts'
import type { OutboundFailure } from './outbound-failure.ts'

/**
 * Maximum number of agents kept, so that connections are reused; the least recently used is closed first. Apps may send in rotation: with
 * one app more than agents, no connection would ever be reused. An idle agent costs 4 KB.
 */
const MAX_AGENTS = 1024
/** All parsed addresses are dropped beyond this number. */
const MAX_TARGETS = 1024

/**
 * A client for addresses that sellers choose. It allows only https, and only public addresses, which it checks after name resolution and
 * again on the connection. No redirects, no proxy, no decompression, one deadline for everything, a bounded answer.
 */
export class GuardedClient {
  readonly #allowInsecure: boolean
  readonly #connect: buildConnector.connector
  /** By owner, in the order of last use. */
  readonly #agents = new Map<number, Agent>()
  /** By address. */
  readonly #targets = new Map<string, ParsedTarget>()
  readonly #underWay = new Set<Exchange>()
  #isInterrupted = false

  constructor(options: GuardOptions) {
    this.#allowInsecure = options.allowInsecure
    this.#connect = guardedConnector(options)
  }

  /** Never throws: anything that the receiver does becomes an outcome. */
  post(request: GuardedPost): Promise<PostOutcome> {
    const target = this.#targetOf(request.url)
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
    // Set again, so that the map stays in this order.
    this.#agents.delete(ownerId)
    this.#agents.set(ownerId, agent)
    if (this.#agents.size > MAX_AGENTS) this.#closeOldestAgent()
    return agent
  }

  #closeOldestAgent(): void {
    const [oldest] = this.#agents
    if (!oldest) return
    const [ownerId, agent] = oldest
    this.#agents.delete(ownerId)
    // Lets requests in flight end, without waiting for them.
    agent.close().catch(() => undefined)
  }

  #targetOf(url: string): ParsedTarget {
    const target = this.#targets.get(url) ?? readTarget(url, this.#allowInsecure)
    if (this.#targets.size > MAX_TARGETS) this.#targets.clear()
    this.#targets.set(url, target)
    return target
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
