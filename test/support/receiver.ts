import { createHmac, timingSafeEqual } from 'node:crypto'
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import type { WebhookBody } from '../../client/src/types.ts'
import type { Certificate } from './certificates.ts'
import { stopServer } from './http-server.ts'

/** A webhook that arrived. `verified` is null if the receiver has no secret. */
export interface ReceivedWebhook<Body = WebhookBody> {
  readonly eventId: string
  readonly eventType: string
  readonly attempt: number
  /** Unix seconds of the signature. */
  readonly timestamp: number
  readonly headers: IncomingHttpHeaders
  readonly raw: Buffer
  readonly body: Body
  readonly verified: boolean | null
}

/** How a receiver answers: with a status, or by a function that writes the response. */
export type ReceiverAnswer<Body = WebhookBody> =
  number | ((response: ServerResponse, webhook: ReceivedWebhook<Body>) => void)

/** The body of an alert. */
export type AlertBody = Readonly<Record<'id' | 'type' | 'kind' | 'subject' | 'text' | 'since', string>>

export interface ReceiverOptions {
  /** Loopback and a free port by default. */
  readonly host?: string
  readonly port?: number
  /** Receives webhooks by https, with this certificate. */
  readonly tls?: Certificate
}

/** A seller's webhook receiver, which verifies both signatures as the documentation for sellers says. */
export class Receiver<Body = WebhookBody> {
  readonly received: ReceivedWebhook<Body>[] = []
  /** Verifies webhooks; null verifies none. */
  secret: string | null = null
  /** Answers for the next webhooks, one each; then `answer`. */
  readonly nextAnswers: ReceiverAnswer<Body>[] = []
  answer: ReceiverAnswer<Body> = 200
  readonly #server: Server
  readonly #waiting = new Set<() => void>()

  private constructor(tls?: Certificate) {
    const receive = (request: IncomingMessage, response: ServerResponse) => void this.#receive(request, response)
    this.#server = tls ? createTlsServer(tls, receive) : createServer(receive)
  }

  static async start<Body = WebhookBody>({ host = '127.0.0.1', port = 0, tls }: ReceiverOptions = {}): Promise<
    Receiver<Body>
  > {
    const receiver = new Receiver<Body>(tls)
    await new Promise<void>((resolve) => receiver.#server.listen(port, host, resolve))
    return receiver
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/webhooks`
  }

  /** The types of what arrived, in order. */
  get types(): string[] {
    return this.received.map(({ eventType }) => eventType)
  }

  /** Waits until `count` webhooks have arrived; the test's own time limit ends it. */
  async waitFor(count: number): Promise<void> {
    while (this.received.length < count) await new Promise<void>((resolve) => this.#waiting.add(resolve))
  }

  stop(): Promise<void> {
    return stopServer(this.#server)
  }

  async #receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const webhook = this.#read(request.headers, await buffer(request))
    this.received.push(webhook)
    for (const resolve of this.#waiting) resolve()
    this.#waiting.clear()
    const answer = this.nextAnswers.shift() ?? this.answer
    if (typeof answer === 'number') response.writeHead(answer).end()
    else answer(response, webhook)
  }

  #read(headers: IncomingHttpHeaders, raw: Buffer): ReceivedWebhook<Body> {
    return {
      eventId: textOf(headers, 'x-gateway-event-id'),
      eventType: textOf(headers, 'x-gateway-event-type'),
      attempt: Number(textOf(headers, 'x-gateway-attempt')),
      timestamp: Number(textOf(headers, 'x-gateway-timestamp')),
      headers,
      raw,
      body: JSON.parse(raw.toString('utf8')) as Body,
      verified: this.secret === null ? null : verifies(this.secret, headers, raw),
    }
  }
}

/** Whether both signatures hold, computed as a seller would, without any code of the service. */
export function verifies(secret: string, headers: IncomingHttpHeaders, raw: Buffer): boolean {
  const timestamp = textOf(headers, 'x-gateway-timestamp')
  const gateway = createHmac('sha256', secret).update(`${timestamp}.`).update(raw).digest('hex')
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
  const signed = `${textOf(headers, 'webhook-id')}.${textOf(headers, 'webhook-timestamp')}.`
  const standard = `v1,${createHmac('sha256', key).update(signed).update(raw).digest('base64')}`
  return (
    same(gateway, textOf(headers, 'x-gateway-signature')) &&
    textOf(headers, 'webhook-signature')
      .split(' ')
      .some((signature) => same(standard, signature))
  )
}

function same(a: string, b: string): boolean {
  return a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b))
}

function textOf(headers: IncomingHttpHeaders, name: string): string {
  const value = headers[name]
  return typeof value === 'string' ? value : ''
}
