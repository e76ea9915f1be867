import { createApp } from '#apps/create-app.ts'
import { getApp } from '#apps/store.ts'
import { operator } from '#commands/caller.ts'
import { perform } from '#commands/perform.ts'
import type { Context } from '#context.ts'
import { createCustomer } from '#customers/create-customer.ts'
import { runMigrations } from '#db/migrate.ts'
import { createPlan } from '#plans/create-plan.ts'
import { findDue } from '#mails/reminders/find-due.ts'
import { DAY_MS, HOUR_MS, addMs, wholeSeconds } from '#shared/time.ts'
import { testContext } from '../test/support/context.ts'
import { openEmptyDatabase, query } from '../test/support/database.ts'
import { SERVER } from '../test/support/factories.ts'
import { sequence } from '../test/support/sequence.ts'
import { inRounds, type Bench, type Row } from './row.ts'

const SMALL = 10_000
const LARGE = 1_000_000
const DUE = 10_000
/** One statement must end within the deadline of every query. */
const BATCH = 25_000

const row = (name: string, which: string): Row => ({
  name,
  what: `query time of a sweep, 10 k mails ${which} among 1 M subscriptions`,
  floor: 'the same among 10 k',
  unit: 'ms',
  judged: 'multiple',
  must: 1.5,
  goal: 1.5,
})

/** What a reminder sweep asks the database: as long among very many subscriptions as among few. */
export const dueQueryBench: Bench = {
  isLong: true,
  rows: [row('due-query', 'due'), row('due-query-sent', 'sent before')],
  async run(options) {
    const scale = options.isQuick ? 100 : 1
    const due = DUE / scale
    const small = testContext()
    return withSecondDatabase(async (db) => {
      const large = { ...small, db }
      await fill(small, SMALL / scale, due)
      await fill(large, LARGE / scale, due)
      const alternate = (expected: number) =>
        inRounds(options, async () => ({
          floor: await timeSweep(small, expected),
          ours: await timeSweep(large, expected),
        }))
      const rounds = await alternate(due)
      for (const ctx of [small, large]) await markAllSent(ctx)
      return { 'due-query': { rounds }, 'due-query-sent': { rounds: await alternate(0) } }
    })
  },
}

/** A second database beside the run's own, migrated, dropped afterwards. */
async function withSecondDatabase<T>(work: (db: Context['db']) => Promise<T>): Promise<T> {
  const { db, drop } = await openEmptyDatabase('large')
  try {
    await runMigrations(db)
    return await work(db)
  } finally {
    await drop()
  }
}

async function timeSweep(ctx: Context, expected: number): Promise<number> {
  const started = performance.now()
  let found = 0
  for await (const due of findDue(ctx, { scope: 'apps in real time', clockOffsetMs: 0 }, new Set()))
    found += Number(due.stage === 3)
  if (found !== expected) throw new Error(`the sweep found ${found} mails, not ${expected}`)
  return performance.now() - started
}

/** `count` subscriptions of as many customers; every n-th ends in the 3-day window, the others within the year after it. */
async function fill(ctx: Context, count: number, due: number): Promise<void> {
  const { app_id } = await perform(ctx, operator('bench'), createApp, { name: 'Bench', auth: 'hmac' }, {})
  const app = await getApp(ctx.db, app_id)
  const price = { amount: 99_000, currency: 'VND', interval_unit: 'month', interval_count: 1 }
  const plan = await perform(ctx, SERVER, createPlan, { code: 'bench', name: 'Bench', prices: [price] }, { app })
  const first = await perform(ctx, SERVER, createCustomer, { name: 'Customer 1', email: 'c1@example.com' }, { app })
  const now = wholeSeconds(ctx.clock.now())
  for (let from = 1; from <= count; from += BATCH) {
    const numbers = sequence(from, Math.min(from + BATCH - 1, count))
    await query(
      ctx.db,
      `INSERT INTO customers (id, app_id, name, email, merchant_customer_id, cc_emails, bcc_emails, locale, created_at, updated_at)
       SELECT ? + seq - 1, ?, CONCAT('Customer ', seq), CONCAT('c', seq, '@example.com'), NULL, '[]', '[]', 'en', ?, ?
       FROM ${numbers} WHERE seq > 1 ORDER BY seq`,
      [first.id, app_id, now, now],
    )
    await query(
      ctx.db,
      `INSERT INTO subscriptions (app_id, end_user_id, external_ref, plan_id, price_id, customer_id, status, period_start,
         current_period_end, anchor_day, in_trial, revision, renewal_token, reminders_stopped_at, created_at, updated_at)
       SELECT ?, seq, CONCAT('user-', seq), ?, ?, ? + seq - 1, 'active', ?,
         IF(MOD(seq, ?) = 0, DATE_ADD(?, INTERVAL MOD(seq * 7919, 86400) SECOND), DATE_ADD(?, INTERVAL MOD(seq * 7919, 31536000) SECOND)),
         1, 0, 1, SHA2(seq, 256), NULL, ?, ?
       FROM ${numbers} ORDER BY seq`,
      [
        app_id,
        plan.id,
        plan.prices[0]?.id,
        first.id,
        addMs(now, -20 * DAY_MS),
        count / due,
        addMs(now, DAY_MS + 12 * HOUR_MS),
        addMs(now, 4 * DAY_MS),
        now,
        now,
      ],
    )
  }
  await query(ctx.db, 'ANALYZE TABLE customers, subscriptions, reminders')
}

async function markAllSent(ctx: Context): Promise<void> {
  const now = wholeSeconds(ctx.clock.now())
  await query(
    ctx.db,
    `INSERT INTO reminders (app_id, subscription_id, period_end, stage, status, claimed_at, handed_over_at, sent_at)
     SELECT app_id, id, current_period_end, 3, 'sent', ?, ?, ? FROM subscriptions WHERE current_period_end <= ?`,
    [now, now, now, addMs(now, 3 * DAY_MS)],
  )
}
