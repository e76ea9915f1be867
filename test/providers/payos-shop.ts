import type { Transaction } from '../../client/src/types.ts'
import { enableMethod } from '../support/operators.ts'
import { startService, type Answer, type SellerClient, type TestService } from '../support/api.ts'
import type { Envelope, Redirect } from '../support/answers.ts'
import { TestClock } from '../support/context.ts'
import { aCheckout, anApp, tokenOf, type TestApp } from '../support/factories.ts'
import {
  payosNotification,
  startPayosPeer,
  type PayosPeer,
  type PeerLink,
  type PeerTransfer,
} from '../support/payos-peer.ts'

export const PAYOS_KEYS = { clientId: 'client-1', apiKey: 'api-1', checksumKey: 'checksum-1' } as const
export const PURCHASE = { mode: 'payment', plan_ref: 'book', amount: 99_000, currency: 'VND' } as const

/** A running service beside a local PayOS, and a seller who takes bank transfers through it. */
export interface PayosShop {
  readonly service: TestService
  readonly payos: PayosPeer
  readonly clock: TestClock
  readonly app: TestApp
  readonly client: SellerClient
  /** The payer of a new checkout chooses PayOS; the link that was created there. */
  open(body?: object): Promise<OpenedLink>
  choose(token: string): Promise<Answer<Redirect>>
  /** PayOS reports a transfer; `changes` go into the signed data. */
  notify(link: PeerLink, transfer: PeerTransfer, changes?: object): Promise<Answer<{ status: string }>>
  send(body: unknown): Promise<Answer<{ status: string }>>
  transaction(id: number): Promise<Transaction>
  stop(): Promise<void>
}

export interface OpenedLink {
  readonly transactionId: number
  readonly token: string
  readonly url: string
  readonly link: PeerLink
}

export async function startPayosShop(): Promise<PayosShop> {
  const clock = new TestClock()
  const payos = await startPayosPeer(clock, PAYOS_KEYS)
  const service = await startService({ BILLING_PAYOS_API_BASE: payos.base }, clock)
  const app = await anApp(service.ctx, { sandbox: false })
  await enableMethod(service.ctx, 'tester', app.app, 'payos', PAYOS_KEYS)
  const client = service.seller(app)
  const choose = (token: string): Promise<Answer<Redirect>> =>
    service.call<Envelope<Redirect>>('POST', `/checkout/${token}/resolve`, {
      raw: JSON.stringify({ payment_method: 'payos' }),
      headers: { 'Content-Type': 'application/json' },
    })
  const send = (body: unknown): Promise<Answer<{ status: string }>> =>
    service.call('POST', '/api/v1/webhooks/bank-transfer-provider', {
      raw: typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body),
      headers: { 'Content-Type': 'application/json' },
    })
  return {
    service,
    payos,
    clock,
    app,
    client,
    choose,
    send,
    async open(body = {}) {
      const asked = 'price_id' in body ? body : { ...PURCHASE, ...body }
      const checkout = await aCheckout(service.ctx, app, asked)
      const token = tokenOf(checkout)
      const answer = await choose(token)
      if (answer.status !== 200) throw new Error(`PayOS was refused: ${answer.text}`)
      const url: string = answer.body.data.redirect_url
      const link = payos.links.find((candidate) => url.endsWith(`/${candidate.id}`))
      return { transactionId: checkout.transaction_id!, token, url, link: link! }
    },
    notify: (link, transfer, changes) => send(payosNotification(PAYOS_KEYS.checksumKey, link, transfer, changes)),
    async transaction(id) {
      return (await client.get(`/api/v1/transactions/${id}`)).body.data
    },
    async stop() {
      await service.stop()
      await payos.stop()
    },
  }
}
