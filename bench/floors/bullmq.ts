import { createRequire } from 'node:module'
import { join } from 'node:path'
import { Agent } from 'undici'
import { answerOrders } from '../worker.ts'
import { postSigned } from './post-signed.ts'
import type { SendOrder } from './undici.ts'

export interface QueueOrder extends SendOrder {
  /** The folder that BullMQ was installed into. */
  readonly packages: string
  readonly redisSocket: string
}

/** What is used of BullMQ, which is no package of this project. */
interface BullMq {
  readonly Queue: new (
    name: string,
    options: object,
  ) => { addBulk(jobs: readonly object[]): Promise<unknown>; close(): Promise<void> }
  readonly Worker: new (
    name: string,
    process: (job: { readonly data: { readonly body: string } }) => Promise<void>,
    options: object,
  ) => {
    on(event: 'completed' | 'failed', listener: (job: unknown, error: Error) => void): void
    run(): Promise<void>
    close(): Promise<void>
  }
}

const AT_ONCE = 64
const BATCH = 1000
const agent = new Agent({ connections: AT_ONCE })
let runs = 0

/** Puts the webhooks into a queue, then sends them by a worker of 64 at once; how long the sending took. */
answerOrders(async (order: QueueOrder): Promise<number> => {
  const { Queue, Worker } = createRequire(join(order.packages, 'package.json'))('bullmq') as BullMq
  const connection = { path: order.redisSocket, maxRetriesPerRequest: null }
  const name = `webhooks-${(runs += 1)}`
  const queue = new Queue(name, { connection })
  const job = { name: 'webhook', data: { body: order.body } }
  for (let added = 0; added < order.count; added += BATCH) {
    await queue.addBulk(Array.from({ length: Math.min(BATCH, order.count - added) }, () => job))
  }
  const worker = new Worker(name, ({ data }) => postSigned(agent, { ...order, body: data.body }), {
    connection,
    concurrency: AT_ONCE,
    autorun: false,
  })
  let left = order.count
  const sent = new Promise<void>((resolve, reject) => {
    worker.on('completed', () => {
      left -= 1
      if (left === 0) resolve()
    })
    worker.on('failed', (_job, error) => reject(error))
  })
  const startedMs = performance.now()
  void worker.run()
  await sent
  const elapsedMs = performance.now() - startedMs
  await worker.close()
  await queue.close()
  return elapsedMs
})
