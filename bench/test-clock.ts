import { request } from 'undici'
import { setTimeout as delay } from 'node:timers/promises'
import { addMs, asAppTime, DAY_MS, parseTimestamp } from '#shared/time.ts'
import { startDaemonProcess } from '../test/support/daemon-process.ts'
import { profiled } from './profiled.ts'
import { inRounds, type Bench } from './row.ts'
import { addSubscriptions, openShop, signed, type Shop } from './shop.ts'

const SMALL = 2000
const LARGE = 100_000
/** Of the many, this part ends in each step: a whole sweep of them would take a minute. */
const LARGE_PART = 10
const STEP_MS = 10 * DAY_MS
const SETTLE_MS = 500

/** An app whose test clock is moved. */
interface Sandbox {
  readonly shop: Shop
  /** How many of its subscriptions end in a step: those with the least ids. */
  readonly ending: number
}

/** One call of the test clock, and the sweeps that it runs: what one subscription that ends costs, among few and among many. */
export const testClockBench: Bench = {
  rows: [
    {
      name: 'test-clock',
      what: 'POST /test-clock, sweep of 100 k subscriptions, for each one that ends',
      floor: 'the same among 2 k',
      unit: 'ms',
      judged: 'multiple',
      must: 1.3,
      goal: 1,
    },
  ],
  async run(options) {
    const scale = options.isQuick ? 100 : 1
    const few = await openSandbox(SMALL / scale, SMALL / scale)
    const many = await openSandbox(LARGE / scale, LARGE / LARGE_PART / scale)
    // Its own sweeps would take work from the calls.
    const daemon = await startDaemonProcess({ BILLING_SWEEP_SECONDS: '86400', ...profiled('test-clock') })
    try {
      const rounds = await inRounds(options, async () => ({
        floor: await timeStep(daemon.url, few),
        ours: await timeStep(daemon.url, many),
      }))
      return { 'test-clock': { rounds } }
    } finally {
      await daemon.stop()
    }
  },
}

/** None of its subscriptions ends in the years of the steps, and none has a customer to write to. */
async function openSandbox(count: number, ending: number): Promise<Sandbox> {
  const shop = await openShop()
  const currentPeriodEnd = asAppTime(addMs(shop.ctx.clock.now(), 3000 * DAY_MS))
  await addSubscriptions(shop, count, () => ({ customerId: null, currentPeriodEnd }))
  return { shop, ending }
}

/** Milliseconds for each subscription that ends in a step of the clock. */
async function timeStep(url: string, { shop, ending }: Sandbox): Promise<number> {
  const { ctx, app } = shop
  const { now } = await call(url, shop, 'GET')
  const appNow = asAppTime(parseTimestamp(now)!)
  await ctx.db.run(
    `UPDATE subscriptions SET current_period_end = ? WHERE app_id = ? AND external_ref <> 'template' ORDER BY id LIMIT ?`,
    [addMs(appNow, STEP_MS / 2), app.app.id, ending],
  )
  const startedMs = performance.now()
  await call(url, shop, 'POST', { advance_seconds: STEP_MS / 1000 })
  const elapsedMs = performance.now() - startedMs
  const restored = await ctx.db.run(
    `UPDATE subscriptions SET status = 'active', current_period_end = ? WHERE app_id = ? AND status = 'expired'`,
    [addMs(appNow, 3000 * DAY_MS), app.app.id],
  )
  if (restored < ending) throw new Error(`${restored} subscriptions of ${ending} have ended`)
  // What the server still purges of the rows that were laid out is none of the next step's work.
  await delay(SETTLE_MS)
  return elapsedMs / ending
}

async function call(url: string, shop: Shop, method: 'GET' | 'POST', body?: object): Promise<{ now: string }> {
  const { path, ...options } = signed(shop, method, '/api/v1/test-clock', body)
  const answer = await request(url + path, { ...options, headersTimeout: 0 })
  const { data } = (await answer.body.json()) as { data?: { now: string } }
  if (answer.statusCode !== 200 || !data) throw new Error(`the test clock was answered ${answer.statusCode}`)
  return data
}
