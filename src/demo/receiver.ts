import { EventEmitter, once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { readBody } from '#http/body.ts'
import { constantTimeEqual, hmacHex } from '#shared/crypto.ts'

/** One webhook as it came, and whether its signature is right. */
export interface ReceivedWebhook {
  readonly eventType: string
  readonly eventId: string
  readonly isSigned: boolean
  readonly body: string
}

const BODY_BYTES = 256 * 1024

/** What a seller's server does with webhooks: reads the exact bytes, checks the signature over them, and answers 2xx. */
export class Receiver {
  /** The webhook secret, once it is known. */
  secret = ''
  readonly #received: ReceivedWebhook[] = []
  readonly #arrivals = new EventEmitter()
  readonly #server = createServer((request, response) => void this.#receive(request, response))

  static async start(): Promise<Receiver> {
    const receiver = new Receiver()
    await new Promise<void>((resolve) => receiver.#server.listen(0, '127.0.0.1', resolve))
    return receiver
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/webhooks`
  }

  /** The first webhook of a type; waits for it. */
  async waitFor(eventType: string, deadlineMs: number): Promise<ReceivedWebhook> {
    const late = AbortSignal.timeout(deadlineMs)
    for (;;) {
      const found = this.#received.find((webhook) => webhook.eventType === eventType)
      if (found) return found
      await once(this.#arrivals, 'webhook', { signal: late }).catch(() => {
        throw new Error(`no ${eventType} came in ${deadlineMs / 1000} s`)
      })
    }
  }

  stop(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }

  async #receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readBody(request, BODY_BYTES)
    const timestamp = String(request.headers['x-gateway-timestamp'])
    const expected = hmacHex(this.secret, `${timestamp}.`, body)
    this.#received.push({
      eventType: String(request.headers['x-gateway-event-type']),
      eventId: String(request.headers['x-gateway-event-id']),
      isSigned: constantTimeEqual(expected, String(request.headers['x-gateway-signature'])),
      body: body.toString('utf8'),
    })
    response.writeHead(204).end()
    this.#arrivals.emit('webhook')
  }
}
