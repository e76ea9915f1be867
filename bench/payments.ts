import { checkoutSessions } from '#checkout/store.ts'
import { randomHex } from '#shared/crypto.ts'
import { endUsers } from '#subscriptions/store.ts'
import { transactions } from '#transactions/store.ts'
import { aCheckout, tokenOf } from '../test/support/factories.ts'
import { countRounds, type Bench } from './row.ts'
import { addSubscriptions, copyRow, firstCopy, openShop, type Shop } from './shop.ts'
import { loadAlternately, ROUND_SECONDS } from './two-servers.ts'
import type { LoadRequest } from './workers/load.ts'

const CONNECTIONS = 16
/** Checkouts that are ready for each round: more than any machine pays in its time. */
const PER_ROUND = 1600 * ROUND_SECONDS
const QUICK = 200
/** Subscriptions that the floor renews in turn. */
const FLOOR_SUBSCRIPTIONS = 1000

/** Payments of checkouts by the test method, each of an end user of its own who is new. */
export const paymentBench: Bench = {
  rows: [
    {
      name: 'payment',
      what: `payments by the test method, durable, ${CONNECTIONS} at once`,
      floor: 'seven statements of a transaction behind a Koa route',
      unit: 'a second',
      judged: 'share',
      must: 0.35,
      goal: 0.6,
    },
  ],
  async run(options) {
    const shop = await openShop()
    await addSubscriptions(shop, FLOOR_SUBSCRIPTIONS)
    const perRound = options.isQuick ? QUICK : PER_ROUND
    const payable = await addCheckouts(shop, perRound * countRounds(options))
    const load = { connections: CONNECTIONS, expectedStatus: 200 }
    const first = firstCopy(shop)
    const floorRequests = Array.from({ length: FLOOR_SUBSCRIPTIONS }, (_, number) =>
      post(`/pay/${first + number}/${first + number}`),
    )
    const rounds = await loadAlternately(shop, options, {
      ours: (number) => {
        const tokens = payable.slice(number * perRound, (number + 1) * perRound)
        return { ...load, isRepeated: false, requests: tokens.map((token) => post(`/checkout/${token}/resolve`)) }
      },
      floor: () => ({ ...load, isRepeated: true, requests: floorRequests }),
    })
    return { payment: { rounds: rounds.map(({ ours, floor }) => ({ ours: ours.perSecond, floor: floor.perSecond })) } }
  },
}

function post(path: string): LoadRequest {
  return {
    method: 'POST',
    path,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ payment_method: 'test' }),
  }
}

/** Open checkouts of as many end users; returns their tokens. */
async function addCheckouts(shop: Shop, count: number): Promise<string[]> {
  const { ctx, app, price, customer } = shop
  const token = tokenOf(await aCheckout(ctx, app, { price_id: price, customer_id: customer, external_ref: 'first' }))
  const session = await ctx.db.one(checkoutSessions, 'WHERE token = ?', [token])
  const transaction = session && (await ctx.db.one(transactions, 'WHERE id = ?', [session.transactionId]))
  if (!transaction) throw new Error('the checkout that is copied has no transaction')
  const firstOfFloor = firstCopy(shop)
  // The rows that the service itself has written meanwhile lie between.
  const first = firstOfFloor + 10 * FLOOR_SUBSCRIPTIONS
  const tokens = Array.from({ length: count }, () => randomHex(32))
  const named = (number: number) => ({ id: first + number, externalRef: `payer-${number}` })
  const endUser = { id: 0, appId: app.app.id, externalRef: '', version: 1, createdAt: ctx.clock.now() }
  await copyRow(ctx.db, endUsers, endUser, count, named)
  await copyRow(ctx.db, transactions, transaction, count, (number) => ({
    ...named(number),
    endUserId: first + number,
  }))
  await copyRow(ctx.db, checkoutSessions, session, count, (number) => ({
    token: tokens[number]!,
    endUserId: first + number,
    transactionId: first + number,
  }))
  // What the floor completes.
  await copyRow(ctx.db, transactions, transaction, FLOOR_SUBSCRIPTIONS, (number) => ({
    id: firstOfFloor + number,
    endUserId: firstOfFloor + number,
    externalRef: `user-${number}`,
  }))
  return tokens
}
