import type { Context } from '#context.ts'
import { sendDueReminders } from '#mails/reminders/send-due-reminders.ts'
import { runSender } from '#webhooks/sender.ts'
import { requireCleanLedger } from '../support/clean-ledger.ts'
import { realTimeContext, wrongClock, type RealTimeContext } from '../support/context.ts'
import { Receiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import { query } from '../support/database.ts'
import { aShopWithWebhooks, remindersFallDue } from './shop.ts'

export interface SkewOptions {
  /** How far the clock of the second sender is ahead. */
  readonly skewMs: number
  readonly events: number
}

const TIMEOUT_MS = 1000
const ANSWER_MS = 700
const SETTINGS = { BILLING_WEBHOOK_TIMEOUT_MS: String(TIMEOUT_MS), BILLING_WEBHOOK_RETRY_MINUTES: '0.02,0.02,0.02' }

/**
 * Runs two senders with different clocks on one database, while receivers use most of their time limit. Throws if a lease is taken
 * early, if an event never arrives, if a mail is sent twice, or if the ledger has a discrepancy.
 */
export async function clockSkew({ skewMs, events }: SkewOptions) {
  const receiver = await Receiver.start()
  receiver.answer = (response) => void setTimeout(() => response.writeHead(200).end(), ANSWER_MS)
  const ctx = realTimeContext(SETTINGS)
  try {
    await remindersFallDue(ctx, await aShopWithWebhooks(ctx, receiver), 'due', events)
    const both: Context[] = [ctx, { ...ctx, clock: wrongClock(skewMs) }]
    await Promise.all(both.map((each) => sendDueReminders(each)))
    await deliver(both)
    const repeated = await checkWebhooks(ctx, receiver)
    if (repeated > 0) throw new Error(`${repeated} leases were taken early`)
    // Not by the files: a second copy of a mail replaces the first.
    const mails = ctx.logged.filter((line) => line.includes('mail written to a file')).length
    if (mails !== events) throw new Error(`${mails} mails to ${events} customers`)
    await requireCleanLedger(ctx, `with clocks ${skewMs} ms apart`)
    return { skewMs, events, repeated, mails }
  } finally {
    await receiver.stop()
  }
}

async function deliver(contexts: readonly Context[]): Promise<void> {
  const stop = new AbortController()
  const senders = Promise.all(contexts.map((ctx) => runSender(ctx, { signal: stop.signal })))
  const isDelivered = async (): Promise<boolean> => {
    const rows: object[] = await query(
      contexts[0]!.db,
      `SELECT id FROM events WHERE delivery_status = 'pending' LIMIT 1`,
    )
    return rows.length === 0
  }
  try {
    await Promise.race([until(isDelivered), senders])
  } finally {
    stop.abort()
    await senders
  }
}

/** Checks that every event was delivered; returns how many arrived again after they were acknowledged. Those that timed out may. */
async function checkWebhooks(ctx: RealTimeContext, receiver: Receiver): Promise<number> {
  const rows: { status: string }[] = await ctx.db.query('SELECT delivery_status AS status FROM events')
  const undelivered = rows.filter(({ status }) => status !== 'delivered').length
  const distinct = new Set(receiver.received.map(({ eventId }) => eventId)).size
  if (undelivered > 0 || distinct !== rows.length) {
    throw new Error(`of ${rows.length} events ${distinct} arrived, and ${undelivered} are not delivered`)
  }
  const [acknowledged]: { again: number }[] = await ctx.db.query(
    'SELECT COUNT(*) - COUNT(DISTINCT event_id) AS again FROM delivery_attempts WHERE error IS NULL',
  )
  return Number(acknowledged?.again)
}
