import { Agent } from 'undici'
import { answerOrders } from '../worker.ts'
import { postSigned } from './post-signed.ts'

export interface SendOrder {
  readonly url: string
  readonly secret: string
  readonly body: string
  readonly count: number
}

const AT_ONCE = 64
const agent = new Agent({ connections: AT_ONCE })

/** Posts the webhook so many times, each signed; how long it took. Nothing is written down. */
answerOrders(async (order: SendOrder): Promise<number> => {
  const startedMs = performance.now()
  let left = order.count
  const send = async (): Promise<void> => {
    while (left > 0) {
      left -= 1
      await postSigned(agent, order)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, send))
  return performance.now() - startedMs
})
