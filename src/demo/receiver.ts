import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { readBody } from '#http/body.ts'
import { constantTimeEqual, hmacHex } from '#shared/crypto.ts'

/** One webhook as it came, and whether its signature is right. */
export interface ReceivedWebhook {
  readonly eventType: string
  readonly eventId: string
  readonly signatureIsRight: boolean
  readonly body: string
}

export interface Receiver {
  readonly url: string
  /** The webhook secret, once it is known. */
  setSecret(secret: string): void
  /** The first webhook of a type; waits for it. */
  waitFor(eventType: string, deadlineMs: number): Promise<ReceivedWebhook>
  stop(): void
}

const BODY_BYTES = 256 * 1024

/** What a seller's server does with webhooks: reads the exact bytes, checks the signature over them, and answers 2xx. */
export async function startReceiver(): Promise<Receiver> {
  let secret = ''
  const received: ReceivedWebhook[] = []
  const waiting = new Set<() => void>()
  const server = createServer((request, response) => {
    void readBody(request, BODY_BYTES).then((body) => {
      const timestamp = String(request.headers['x-gateway-timestamp'])
      const expected = hmacHex(secret, `${timestamp}.`, body)
      received.push({
        eventType: String(request.headers['x-gateway-event-type']),
        eventId: String(request.headers['x-gateway-event-id']),
        signatureIsRight: constantTimeEqual(expected, String(request.headers['x-gateway-signature'])),
        body: body.toString('utf8'),
      })
      response.writeHead(204).end()
      for (const check of waiting) check()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/webhooks`,
    setSecret: (value) => void (secret = value),
    stop() {
      server.close()
      server.closeAllConnections()
    },
    waitFor: (eventType, deadlineMs) =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(() => {
          waiting.delete(check)
          reject(new Error(`no ${eventType} came in ${deadlineMs / 1000} s`))
        }, deadlineMs)
        const check = () => {
          const found = received.find((webhook) => webhook.eventType === eventType)
          if (!found) return
          clearTimeout(timer)
          waiting.delete(check)
          resolve(found)
        }
        waiting.add(check)
        check()
      }),
  }
}
