import { operator } from '#commands/caller.ts'
import { perform } from '#commands/perform.ts'
import { SERVER } from '../test/support/factories.ts'
import { createApp } from '#apps/create-app.ts'
import { getApp } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { createCustomer } from '#customers/create-customer.ts'
import { createPlan } from '#plans/create-plan.ts'
import { findDue } from '#renewals/find-due.ts'
import { DAY_MS, HOUR_MS, addMs, wholeSeconds } from '#shared/time.ts'

export interface ReminderBench {
  readonly due: number
  readonly small: Measured
  readonly large: Measured
  /** How many times longer the sweep takes at the large size; at most 1.5 is asked. */
  readonly ratio: number
  /** What the resident memory grew by over the sweeps of the large size, in MB. */
  readonly memoryGrowthMb: number
}

interface Measured {
  readonly subscriptions: number
  /** Milliseconds of a sweep's queries, medians over the rounds: with all of them due, and with all of them sent before. */
  readonly sweepMs: number
  readonly resweepMs: number
}

const SMALL = 10_000
const LARGE = 1_000_000
const DUE = 10_000
const ROUNDS = 7
const POOL_BYTES = 2 ** 30
/** One statement must end within the deadline of every query. */
const BATCH = 25_000

/**
 * The query time of a reminder sweep with the same number of mails due among few and among very many subscriptions, in rounds that take
 * the two in turn, so that what drifts on the machine drifts for both. The databases are empty and migrated; the rows are left in them. Both are on one
 * server of the benchmark's own, whose buffer pool this sets to 1 GB.
 */
export async function benchReminders(
  contexts: { readonly small: Context; readonly large: Context },
  report: (line: string) => void,
): Promise<ReminderBench> {
  // What a server for a million subscriptions has; the embedded one's 32 MB would measure the disk.
  await contexts.large.db.source.query(`SET GLOBAL innodb_buffer_pool_size = ${POOL_BYTES}`)
  await fill(contexts.small, SMALL)
  await fill(contexts.large, LARGE)
  report(`reminders: ${SMALL} and ${LARGE} subscriptions are there, ${DUE} of each due`)
  const sweep = await takeTurns(contexts, DUE)
  const { small, large } = contexts
  for (const ctx of [small, large]) await markAllSent(ctx)
  const resweep = await takeTurns(contexts, 0)
  const result = {
    due: DUE,
    small: { subscriptions: SMALL, sweepMs: sweep.smallMs, resweepMs: resweep.smallMs },
    large: { subscriptions: LARGE, sweepMs: sweep.largeMs, resweepMs: resweep.largeMs },
    ratio: sweep.largeMs / sweep.smallMs,
    memoryGrowthMb: sweep.memoryGrowthMb,
  }
  report(
    `reminders: sweep ${result.small.sweepMs.toFixed(0)} and ${result.large.sweepMs.toFixed(0)} ms, ratio ${result.ratio.toFixed(2)}; ` +
      `sent before: ${result.small.resweepMs.toFixed(0)} and ${result.large.resweepMs.toFixed(0)} ms; memory +${result.memoryGrowthMb.toFixed(1)} MB`,
  )
  return result
}

async function takeTurns(
  { small, large }: { readonly small: Context; readonly large: Context },
  expected: number,
): Promise<{ smallMs: number; largeMs: number; memoryGrowthMb: number }> {
  const smallMs: number[] = []
  const largeMs: number[] = []
  // The first round fills the server's and the runtime's caches.
  await timeSweep(small, expected)
  await timeSweep(large, expected)
  const before = process.memoryUsage().rss
  for (let round = 0; round < ROUNDS; round += 1) {
    smallMs.push(await timeSweep(small, expected))
    largeMs.push(await timeSweep(large, expected))
  }
  const memoryGrowthMb = Math.max(0, process.memoryUsage().rss - before) / 2 ** 20
  return { smallMs: median(smallMs), largeMs: median(largeMs), memoryGrowthMb }
}

async function timeSweep(ctx: Context, expected: number): Promise<number> {
  const started = performance.now()
  let found = 0
  for await (const due of findDue(ctx, { scope: 'apps in real time', clockOffsetMs: 0 }, new Set()))
    found += Number(due.stage === 3)
  if (found !== expected) throw new Error(`the sweep found ${found} mails, not ${expected}`)
  return performance.now() - started
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
}

/** `count` subscriptions of as many customers; every n-th ends in the 3-day window, the others within the year after it. */
async function fill(ctx: Context, count: number): Promise<void> {
  const { app_id } = await perform(ctx, operator('bench'), createApp, { name: 'Bench', auth: 'hmac' }, {})
  const app = await getApp(ctx.db, app_id)
  const price = { amount: 99_000, currency: 'VND', interval_unit: 'month', interval_count: 1 }
  const plan = await perform(ctx, SERVER, createPlan, { code: 'bench', name: 'Bench', prices: [price] }, { app })
  const first = await perform(ctx, SERVER, createCustomer, { name: 'Customer 1', email: 'c1@example.com' }, { app })
  const now = wholeSeconds(ctx.clock.now())
  await fillNumbers(ctx, count)
  for (let from = 0; from < count; from += BATCH) {
    await ctx.db.source.query(
      `INSERT INTO customers (id, app_id, name, email, merchant_customer_id, cc_emails, bcc_emails, locale, created_at, updated_at)
       SELECT ? + n - 1, ?, CONCAT('Customer ', n), CONCAT('c', n, '@example.com'), NULL, '[]', '[]', 'en', ?, ?
       FROM bench_numbers WHERE n > ? AND n <= ? AND n > 1 ORDER BY n`,
      [first.id, app_id, now, now, from, from + BATCH],
    )
    await ctx.db.source.query(
      `INSERT INTO subscriptions (app_id, end_user_id, external_ref, plan_id, price_id, customer_id, status, period_start,
         current_period_end, anchor_day, in_trial, revision, renewal_token, reminders_stopped_at, created_at, updated_at)
       SELECT ?, n, CONCAT('user-', n), ?, ?, ? + n - 1, 'active', ?,
         IF(MOD(n, ?) = 0, DATE_ADD(?, INTERVAL MOD(n * 7919, 86400) SECOND), DATE_ADD(?, INTERVAL MOD(n * 7919, 31536000) SECOND)),
         1, 0, 1, SHA2(n, 256), NULL, ?, ?
       FROM bench_numbers WHERE n > ? AND n <= ? ORDER BY n`,
      [
        app_id,
        plan.id,
        plan.prices[0]?.id,
        first.id,
        addMs(now, -20 * DAY_MS),
        count / DUE,
        addMs(now, DAY_MS + 12 * HOUR_MS),
        addMs(now, 4 * DAY_MS),
        now,
        now,
        from,
        from + BATCH,
      ],
    )
  }
  await ctx.db.source.query('DROP TABLE bench_numbers')
  await ctx.db.source.query('ANALYZE TABLE customers, subscriptions, reminders')
}

async function fillNumbers(ctx: Context, count: number): Promise<void> {
  await ctx.db.source.query('CREATE TABLE bench_numbers (n BIGINT NOT NULL PRIMARY KEY) ENGINE=InnoDB')
  await ctx.db.source.query('INSERT INTO bench_numbers VALUES (1)')
  for (let filled = 1; filled < count; filled *= 2) {
    await ctx.db.source.query('INSERT INTO bench_numbers SELECT n + ? FROM bench_numbers WHERE n + ? <= ?', [
      filled,
      filled,
      count,
    ])
  }
}

async function markAllSent(ctx: Context): Promise<void> {
  const now = wholeSeconds(ctx.clock.now())
  await ctx.db.source.query(
    `INSERT INTO reminders (app_id, subscription_id, period_end, stage, status, claimed_at, handed_over_at, sent_at)
     SELECT app_id, id, current_period_end, 3, 'sent', ?, ?, ? FROM subscriptions WHERE current_period_end <= ?`,
    [now, now, now, addMs(now, 3 * DAY_MS)],
  )
}
