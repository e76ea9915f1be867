import { createHmac, timingSafeEqual } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { answerOrders } from '../worker.ts'

/** `count` begins anew. */
export interface ReceiverOrder {
  readonly secret: string
}

export interface ReceiverState {
  readonly url: string
  /** Genuine webhooks since the last order. */
  readonly genuine: number
  /** Others since then. */
  readonly forged: number
}

let secret = ''
let genuine = 0
let forged = 0

const server = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const { 'x-gateway-timestamp': timestamp, 'x-gateway-signature': signature } = request.headers
    const expected = createHmac('sha256', secret).update(`${String(timestamp)}.`)
    for (const chunk of chunks) expected.update(chunk)
    const given = Buffer.from(String(signature), 'hex')
    if (given.length === 32 && timingSafeEqual(expected.digest(), given)) genuine += 1
    else forged += 1
    response.writeHead(200).end()
  })
})
const listening = new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))

/** A receiver that checks each signature; reports what arrived and resets the count. */
answerOrders(async (order: ReceiverOrder): Promise<ReceiverState> => {
  await listening
  const state = { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hooks`, genuine, forged }
  ;({ secret } = order)
  genuine = 0
  forged = 0
  return state
})
