import { events } from '#webhooks/store.ts'
import type { CheckoutSession, Subscription, Transaction } from '../../client/src/types.ts'
import { asRealTime, parseTimestamp } from '#shared/time.ts'
import type { ConfirmOutcome } from '#transactions/confirm-payment.ts'
import { getSubscription } from '#subscriptions/store.ts'
import { getTransaction } from '#transactions/store.ts'
import { startService, type SellerClient, type TestService } from './api.ts'
import { anApp, aPlan, transferred, type AppOptions, type TestApp } from './factories.ts'
import { TestClock } from './context.ts'

/** One event as the app would receive it. */
export interface EmittedEvent {
  readonly type: string
  readonly data: Record<string, unknown>
}

/** A checkout that asks for money, which a free trial does not. */
export type PayableCheckout = CheckoutSession & { readonly transaction_id: number }

/** An app and a seller over real HTTP, on a clock that the test moves. */
export interface Scenario {
  readonly service: TestService
  readonly app: TestApp
  readonly seller: SellerClient
  /** Moves the clock: `scenario.at('2026-03-01 10:00:00')`. */
  at(timestamp: string): void
  plan(code: string, ...prices: object[]): Promise<{ id: string; prices: string[] }>
  /** Creates a customer over the API, and returns its id. */
  customer(): Promise<string>
  /** Opens a checkout over the API; `body` adds to what every checkout needs. */
  checkout(body: object): Promise<PayableCheckout>
  /** Pays an open checkout by the test method through the hosted page. */
  pay(checkout: { checkout_url: string }): Promise<void>
  /** The bank reports a transfer of what the transaction still lacks, made at `paidAt` (now by default). */
  reportTransfer(transaction: { transaction_id: number }, paidAt?: string): Promise<ConfirmOutcome>
  subscription(externalRef?: string): Promise<Subscription>
  /** What the end user's renewal link ends in. */
  renewalToken(externalRef?: string): Promise<string>
  transaction(id: number): Promise<Transaction>
  /** The events since the last call, oldest first. */
  newEvents(): Promise<EmittedEvent[]>
}

export async function startScenario(
  options: AppOptions = {},
  settings: Readonly<Record<string, string>> = {},
): Promise<Scenario> {
  const clock = new TestClock()
  const service = await startService(settings, clock)
  const app = await anApp(service.ctx, options)
  const seller = service.seller(app)
  let lastSeen = 0
  return {
    service,
    app,
    seller,
    at: (timestamp) => clock.set(timestamp),
    async plan(code, ...prices) {
      const plan = await aPlan(service.ctx, app, { code, prices })
      return { id: `plan_${plan.id}`, prices: plan.prices.map(({ id }) => `price_${id}`) }
    },
    async customer() {
      return (await seller.post('/api/v1/customers', { name: 'An', email: 'an@example.com' })).body.data.id
    },
    async checkout(body) {
      const urls = { success_url: 'https://shop.example/ok', cancel_url: 'https://shop.example/no' }
      const answer = await seller.post('/api/v1/checkout-sessions', {
        external_ref: 'user-1',
        mode: 'subscription',
        ...urls,
        ...body,
      })
      if (answer.status !== 201) throw new Error(`the checkout was refused: ${answer.text}`)
      return answer.body.data as PayableCheckout
    },
    async pay({ checkout_url }) {
      const answer = await service.call('POST', `${checkout_url}/resolve`, {
        raw: JSON.stringify({ payment_method: 'test' }),
        headers: { 'Content-Type': 'application/json' },
      })
      if (answer.status !== 200) throw new Error(`the payment was refused: ${answer.text}`)
    },
    async reportTransfer({ transaction_id: transactionId }, paidAt) {
      const { amount, amountReceived, currency } = await getTransaction(service.ctx.db, transactionId)
      const at = paidAt === undefined ? clock.now() : asRealTime(parseTimestamp(paidAt)!)
      return transferred(service.ctx, transactionId, amount - amountReceived, { currency, paidAt: at })
    },
    async subscription(externalRef = 'user-1') {
      const answer = await seller.get(`/api/v1/subscriptions/${encodeURIComponent(externalRef)}`)
      if (answer.status !== 200) throw new Error(`${externalRef} has no subscription: ${answer.text}`)
      return answer.body.data
    },
    async renewalToken(externalRef = 'user-1') {
      return (await getSubscription(service.ctx.db, app.app.id, externalRef)).renewalToken
    },
    async transaction(id) {
      return (await seller.get(`/api/v1/transactions/${id}`)).body.data
    },
    async newEvents() {
      const rows = await service.ctx.db.all(events, 'WHERE id > ? ORDER BY id', [lastSeen])
      lastSeen = rows.at(-1)?.id ?? lastSeen
      return rows.map(({ body }) => {
        const { event_type, data } = JSON.parse(body.toString('utf8')) as {
          event_type: string
          data: Record<string, unknown>
        }
        return { type: event_type, data }
      })
    },
  }
}

/** The names of the events since the last call. */
export async function newEventTypes(scenario: Scenario): Promise<string[]> {
  return (await scenario.newEvents()).map(({ type }) => type)
}
