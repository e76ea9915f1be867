import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { randomHex } from '#shared/crypto.ts'
import { addSubscriptions, openShop, signed, type Shop } from '../../bench/shop.ts'
import { startWorker } from '../../bench/worker.ts'
import type { LoadOrder, LoadResult } from '../../bench/workers/load.ts'
import { startDaemonProcess, type DaemonProcess } from '../support/daemon-process.ts'
import { until } from '../support/until.ts'

export interface SteadyRequestsOptions {
  /** The minimum of answered requests. */
  readonly requests: number
  /** How long each kind of request is sent per round; a round takes less than the five minutes of a signature. */
  readonly loadSeconds: number
  /** The heap growth in kilobytes allowed from the end of the first round to that of the last. */
  readonly mostGrowthKb: number
}

const END_USERS = 1000
const CONNECTIONS = 32
const HEAP = /^\{"heap":(\d+)\}$/

/**
 * One daemon answers round after round of reads, checkouts, calls with invented keys and missing pages. Throws if its heap,
 * after a garbage collection, has grown by more than is allowed.
 */
export async function steadyRequests(options: SteadyRequestsOptions) {
  const { requests, loadSeconds, mostGrowthKb } = options
  const shop = await openShop()
  await addSubscriptions(shop, END_USERS)
  const preload = pathToFileURL(join(import.meta.dirname, 'report-heap.ts')).href
  const daemon = await startDaemonProcess({ NODE_OPTIONS: `--import ${preload}` })
  const load = startWorker<LoadOrder, LoadResult>(join('workers', 'load.ts'))
  try {
    const heapsKb: number[] = []
    let answered = 0
    while (answered < requests || heapsKb.length < 2) {
      for (const kind of kindsOf(shop))
        answered += (await load.ask({ ...kind, origin: daemon.url, isRepeated: true })).count
      heapsKb.push(await heapKb(daemon))
    }
    const [firstHeapKb, lastHeapKb] = [heapsKb[0] ?? NaN, heapsKb.at(-1) ?? NaN]
    if (!(lastHeapKb - firstHeapKb <= mostGrowthKb)) throw new Error(`the heap grew: ${heapsKb.join(', ')} KB`)
    return { requests: answered, firstHeapKb, lastHeapKb }
  } finally {
    await load.stop()
    await daemon.stop()
  }

  /** The requests of one round, signed now; each uses values of no earlier round. */
  function kindsOf(sold: Shop): Omit<LoadOrder, 'origin' | 'isRepeated'>[] {
    const refs = Array.from({ length: END_USERS }, (_, number) => `user-${number}`)
    const reads = refs.map((ref) => signed(sold, 'GET', `/api/v1/subscriptions/${ref}`))
    const checkouts = refs.map((external_ref) =>
      signed(sold, 'POST', '/api/v1/checkout-sessions', {
        external_ref,
        mode: 'subscription',
        price_id: sold.price,
        customer_id: sold.customer,
        success_url: 'https://shop.example/ok',
        cancel_url: 'https://shop.example/no',
      }),
    )
    const strangers = reads.map((read) => ({
      ...read,
      headers: { ...read.headers, 'x-app-key': `pk_${randomHex(12)}` },
    }))
    const pages = refs.map(() => ({ method: 'GET' as const, path: `/checkout/${randomHex(32)}`, headers: {} }))
    const seconds = loadSeconds
    return [
      { requests: reads, seconds: 5 * seconds, connections: CONNECTIONS, expectedStatus: 200 },
      { requests: checkouts, seconds, connections: CONNECTIONS, expectedStatus: 201 },
      { requests: strangers, seconds, connections: 1, expectedStatus: 401 },
      { requests: pages, seconds, connections: CONNECTIONS, expectedStatus: 404 },
    ]
  }
}

/** The heap of a daemon with `report-heap.ts` preloaded. Clears its log. */
async function heapKb({ pid, logged }: DaemonProcess): Promise<number> {
  logged.length = 0
  process.kill(pid, 'SIGUSR2')
  const reported = (): string | undefined => logged.find((line) => HEAP.test(line))
  await until(() => reported() !== undefined)
  return Math.round(Number(HEAP.exec(reported() ?? '')?.[1]) / 1024)
}
