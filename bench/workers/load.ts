import { Client } from 'undici'
import { answerOrders } from '../worker.ts'

export interface LoadRequest {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
}

export interface LoadOrder {
  readonly origin: string
  readonly requests: readonly LoadRequest[]
  /** Begins again with the first request after the last; otherwise it ends there. */
  readonly isRepeated: boolean
  readonly connections: number
  /** No request begins later. */
  readonly seconds: number
  readonly expectedStatus: number
}

export interface LoadResult {
  readonly perSecond: number
  /** The time that one request of a hundred exceeds. */
  readonly p99Ms: number
  /** How many were answered. */
  readonly count: number
}

answerOrders(async (order: LoadOrder): Promise<LoadResult> => {
  const { requests, connections, seconds } = order
  const times: number[] = []
  const clients = Array.from({ length: connections }, () => new Client(order.origin))
  const startedMs = performance.now()
  const endMs = startedMs + seconds * 1000
  let next = 0
  const work = async (client: Client): Promise<void> => {
    while (performance.now() < endMs && (order.isRepeated || next < requests.length)) {
      const request = requests[next++ % requests.length]!
      const sentMs = performance.now()
      const status = await send(client, request)
      if (status !== order.expectedStatus) throw new Error(`${request.method} ${request.path} was answered ${status}`)
      times.push(performance.now() - sentMs)
    }
  }
  await Promise.all(clients.map(work))
  const elapsedMs = performance.now() - startedMs
  await Promise.all(clients.map((client) => client.close()))
  times.sort((a, b) => a - b)
  return {
    perSecond: (times.length / elapsedMs) * 1000,
    p99Ms: times[Math.floor(times.length * 0.99)] ?? NaN,
    count: times.length,
  }
})

/** By the client's own interface, which costs a third of `request`: what the load generator takes of the machine, the servers lack. */
function send(client: Client, { method, path, headers, body }: LoadRequest): Promise<number> {
  return new Promise((resolve, reject) => {
    let status = 0
    client.dispatch(
      { method, path, headers, ...(body === undefined ? {} : { body }) },
      {
        onRequestStart: () => undefined,
        onResponseStart: (_controller, statusCode) => {
          status = statusCode
        },
        onResponseData: () => undefined,
        onResponseEnd: () => resolve(status),
        onResponseError: (_controller, error) => reject(error),
      },
    )
  })
}
