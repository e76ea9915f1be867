import { Client } from 'undici'
import { answerOrders } from '../../bench/worker.ts'
import type { LoadRequest } from '../../bench/workers/load.ts'

export interface OfferOrder {
  readonly origin: string
  /** Sent in turn, again and again. */
  readonly requests: readonly LoadRequest[]
  /**
   * Requests are sent at their due time, whether or not earlier ones are answered. The rate grows by half for each second in which none
   * has been refused yet: other work may have taken the machine while the capacity was measured.
   */
  readonly perSecond: number
  readonly seconds: number
}

export interface OfferResult {
  readonly offered: number
  /** The number of answers by status; 0 stands for a broken connection. */
  readonly answers: Readonly<Record<number, number>>
  /** The time of each 2xx answer since the request was due, in milliseconds, ascending. */
  readonly acceptedMs: readonly number[]
  /** The same for 429. */
  readonly refusedMs: readonly number[]
  /** 429 answers without Retry-After. */
  readonly withoutRetryAfter: number
}

/** The interval of checks for due requests. */
const TICK_MS = 4
const RATE_GROWTH = 1.5
/** Enough connections that this process is not the bottleneck. */
const MAX_CONNECTIONS = 15_000
const KEPT_CONNECTIONS = 1000
const CONNECTIONS_AT_ONCE = 100

answerOrders(async ({ origin, requests, perSecond, seconds }: OfferOrder): Promise<OfferResult> => {
  const idle: Client[] = []
  const fresh: Client[] = []
  const clients: Client[] = []
  const answers: Record<number, number> = {}
  const acceptedMs: number[] = []
  const refusedMs: number[] = []
  const pending = new Set<Promise<void>>()
  let withoutRetryAfter = 0
  let offered = 0

  const takeClient = (): Client => {
    const free = idle.pop()
    if (free) return free
    if (clients.length === MAX_CONNECTIONS) throw new Error(`${MAX_CONNECTIONS} requests are without an answer`)
    const client = new Client(origin)
    clients.push(client)
    return client
  }
  const offer = async (request: LoadRequest, dueMs: number): Promise<void> => {
    const client = takeClient()
    const { status, retryAfter } = await ask(client, request)
    idle.push(client)
    answers[status] = (answers[status] ?? 0) + 1
    const tookMs = performance.now() - dueMs
    if (status >= 200 && status < 300) acceptedMs.push(tookMs)
    if (status !== 429) return
    refusedMs.push(tookMs)
    if (retryAfter === undefined) withoutRetryAfter += 1
  }

  // Kept alive, as by a proxy: opening connections is not measured.
  while (clients.length < KEPT_CONNECTIONS) {
    const more = Array.from({ length: CONNECTIONS_AT_ONCE }, takeClient)
    await Promise.all(more.map((client) => ask(client, { method: 'GET', path: '/healthz', headers: {} })))
    fresh.push(...more)
  }
  idle.push(...fresh)
  const startedMs = performance.now()
  let rate = perSecond
  for (let second = 0; second < seconds; second += 1) {
    if (second > 0 && refusedMs.length === 0) rate *= RATE_GROWTH
    const total = Math.round(rate)
    const beganMs = startedMs + second * 1000
    let sent = 0
    while (sent < total) {
      const due = Math.min(total, Math.floor(((performance.now() - beganMs) / 1000) * rate))
      for (; sent < due; sent += 1) {
        const dueMs = beganMs + (sent / rate) * 1000
        const one: Promise<void> = offer(requests[offered % requests.length]!, dueMs).finally(() => pending.delete(one))
        pending.add(one)
        offered += 1
      }
      await new Promise((resolve) => setTimeout(resolve, TICK_MS))
    }
  }
  await Promise.all(pending)
  await Promise.all(clients.map((client) => client.close()))
  const ascending = (a: number, b: number): number => a - b
  return {
    offered,
    answers,
    acceptedMs: acceptedMs.sort(ascending),
    refusedMs: refusedMs.sort(ascending),
    withoutRetryAfter,
  }
})

/** `status` 0: the connection broke. */
function ask(
  client: Client,
  { method, path, headers, body }: LoadRequest,
): Promise<{ status: number; retryAfter: string | undefined }> {
  return new Promise((resolve) => {
    let status = 0
    let retryAfter: string | undefined
    client.dispatch(
      { method, path, headers, ...(body === undefined ? {} : { body }) },
      {
        onRequestStart: () => undefined,
        onResponseStart: (_controller, statusCode, answered) => {
          status = statusCode
          const value = answered['retry-after']
          retryAfter = typeof value === 'string' ? value : undefined
        },
        onResponseData: () => undefined,
        onResponseEnd: () => resolve({ status, retryAfter }),
        onResponseError: () => resolve({ status: 0, retryAfter }),
      },
    )
  })
}
