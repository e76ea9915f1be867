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

export interface GuardedClient {
  /** Never throws: anything that the receiver does becomes an outcome. */
  post(request: GuardedPost): Promise<PostOutcome>
  /** Ends every post under way, and each that follows, as `interrupted`. */
  interrupt(): void
  /** Drops all connections. */
  close(): void
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
