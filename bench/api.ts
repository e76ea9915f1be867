import type { Bench, Outcome, Row } from './row.ts'
import { addSubscriptions, openShop, signed } from './shop.ts'
import { loadAlternately } from './two-servers.ts'
import type { LoadResult } from './workers/load.ts'

const CONNECTIONS = 32
/** End users that the requests name in turn. */
const END_USERS = 1000

const p99 = (name: string, of: string): Row => ({
  name,
  what: `p99 of ${of}, ${CONNECTIONS} connections`,
  floor: 'p99 of the same floor',
  unit: 'ms',
  judged: 'multiple',
  must: 2.5,
  goal: 2,
})

/** A read of a subscription by the seller's server. */
export const readBench: Bench = {
  rows: [
    {
      name: 'read',
      what: `signed GET /subscriptions/{ref}, ${CONNECTIONS} connections`,
      floor: 'Koa, router, HMAC, one point SELECT',
      unit: 'a second',
      judged: 'share',
      must: 0.6,
      goal: 0.8,
    },
    p99('read-p99', 'read'),
  ],
  async run(options) {
    const shop = await openShop()
    await addSubscriptions(shop, END_USERS)
    const requests = refs().map((ref) => signed(shop, 'GET', `/api/v1/subscriptions/${ref}`))
    const load = { requests, isRepeated: true, connections: CONNECTIONS, expectedStatus: 200 }
    return bothRows('read', await loadAlternately(shop, options, { ours: () => load, floor: () => load }))
  },
}

/** A checkout of a plan and a customer that are there, by end users who have a subscription. */
export const checkoutBench: Bench = {
  rows: [
    {
      name: 'checkout',
      what: 'POST /checkout-sessions, existing plan and customer',
      floor: 'Koa, router, HMAC, one transaction with two INSERTs',
      unit: 'a second',
      judged: 'share',
      must: 0.42,
      goal: 0.6,
    },
    p99('checkout-p99', 'checkout'),
  ],
  async run(options) {
    const shop = await openShop()
    await addSubscriptions(shop, END_USERS)
    const requests = refs().map((external_ref) =>
      signed(shop, 'POST', '/api/v1/checkout-sessions', {
        external_ref,
        mode: 'subscription',
        price_id: shop.price,
        customer_id: shop.customer,
        success_url: 'https://shop.example/ok',
        cancel_url: 'https://shop.example/no',
      }),
    )
    const load = { requests, isRepeated: true, connections: CONNECTIONS, expectedStatus: 201 }
    return bothRows('checkout', await loadAlternately(shop, options, { ours: () => load, floor: () => load }))
  },
}

function bothRows(
  name: string,
  rounds: readonly { ours: LoadResult; floor: LoadResult }[],
): Readonly<Record<string, Outcome>> {
  return {
    [name]: { rounds: rounds.map(({ ours, floor }) => ({ ours: ours.perSecond, floor: floor.perSecond })) },
    [`${name}-p99`]: { rounds: rounds.map(({ ours, floor }) => ({ ours: ours.p99Ms, floor: floor.p99Ms })) },
  }
}

function refs(): string[] {
  return Array.from({ length: END_USERS }, (_, number) => `user-${number}`)
}
