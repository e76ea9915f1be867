import { signRequest } from '#apps/call-signature.ts'
import type { Queries } from '#db/queries.ts'
import type { Table } from '#db/table.ts'
import { randomHex } from '#shared/crypto.ts'
import { systemClock, unixSeconds } from '#shared/time.ts'
import { endUsers, getSubscription, subscriptions, type Subscription } from '#subscriptions/store.ts'
import { presentContext, type TestContext } from '../test/support/context.ts'
import { aCustomer, anApp, aPlan, paid, priceId, type AppOptions, type TestApp } from '../test/support/factories.ts'
import type { LoadRequest } from './workers/load.ts'

/** An app that sells, with the names that requests need. */
export interface Shop {
  readonly ctx: TestContext
  readonly app: TestApp
  readonly price: string
  readonly customer: string
}

export async function openShop(options: AppOptions = {}): Promise<Shop> {
  const ctx = presentContext()
  const app = await anApp(ctx, options)
  const price = priceId(await aPlan(ctx, app))
  return { ctx, app, price, customer: `cus_${(await aCustomer(ctx, app)).id}` }
}

/** A request that the app's server signed now: good for five minutes. */
export function signed({ app }: Shop, method: LoadRequest['method'], path: string, body?: object): LoadRequest {
  const text = body === undefined ? '' : JSON.stringify(body)
  const timestamp = String(unixSeconds(systemClock.now()))
  const headers = {
    'x-app-key': app.apiKey,
    'x-timestamp': timestamp,
    'x-signature': signRequest(app.secret, timestamp, { method, target: path, body: Buffer.from(text) }),
  }
  if (body === undefined) return { method, path, headers }
  return { method, path, headers: { ...headers, 'content-type': 'application/json' }, body: text }
}

/** Ids of an app's copies begin here: no row that the service wrote is near. */
export function firstCopy({ app }: Pick<Shop, 'app'>): number {
  return app.app.id * 10_000_000
}

/** `count` end users, `user-0` and so on, each with a subscription that was paid now, with ids from `firstCopy` on. */
export async function addSubscriptions(
  shop: Shop,
  count: number,
  change: (number: number) => Partial<Subscription> = () => ({}),
): Promise<void> {
  const { ctx, app, price, customer } = shop
  const first = firstCopy(shop)
  await paid(ctx, app, { price_id: price, customer_id: customer, external_ref: 'template' })
  const template = await getSubscription(ctx.db, app.app.id, 'template')
  const named = (number: number) => ({ id: first + number, externalRef: `user-${number}` })
  const endUser = { id: 0, appId: app.app.id, externalRef: '', version: 1, createdAt: ctx.clock.now() }
  await copyRow(ctx.db, endUsers, endUser, count, named)
  await copyRow(ctx.db, subscriptions, template, count, (number) => ({
    ...named(number),
    endUserId: first + number,
    renewalToken: randomHex(32),
    ...change(number),
  }))
}

const BATCH = 1000

/** Writes copies of a row, each changed by `change`, which gives an id too where the table's own will not do. */
export async function copyRow<R extends object>(
  db: Queries,
  table: Table<R>,
  row: NoInfer<R>,
  count: number,
  change: (number: number) => Partial<NoInfer<R>>,
): Promise<void> {
  for (let from = 0; from < count; from += BATCH) {
    const length = Math.min(BATCH, count - from)
    const rows = Array.from({ length }, (_, index) => ({ ...row, id: undefined, ...change(from + index) }))
    await db.insertAll(table, rows)
  }
}
