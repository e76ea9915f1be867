import { join } from 'node:path'
import { customers, findCustomer } from '#customers/store.ts'
import { parseId } from '#shared/ids.ts'
import { DAY_MS, addMs } from '#shared/time.ts'
import { addSubscriptions, copyRow, firstCopy, openShop, type Shop } from '../../bench/shop.ts'
import { startWorker } from '../../bench/worker.ts'
import type { MailboxState } from '../../bench/workers/mailbox.ts'
import { testEnvironment } from '../support/context.ts'

export interface SteadyMemoryOptions {
  readonly sweeps: number
  readonly mailsPerSweep: number
  /** Kilobytes by which the heap may grow from the second sweep to the last. */
  readonly mostGrowthKb: number
}

export interface SteadyMemoryFigures {
  readonly mails: number
  readonly firstHeapKb: number
  readonly lastHeapKb: number
}

/**
 * One process sends reminders sweep after sweep. Throws where a mail is missing, or where its heap, after the garbage is collected, has
 * grown by more than is allowed: what a mail leaves behind would add up.
 */
export async function steadyMemory(options: SteadyMemoryOptions): Promise<SteadyMemoryFigures> {
  const { sweeps, mailsPerSweep, mostGrowthKb } = options
  const mails = sweeps * mailsPerSweep
  const mailbox = startWorker<'count', MailboxState>(join('workers', 'mailbox.ts'))
  const { url } = await mailbox.ask('count')
  const shop = await openShop()
  await addPeriods(shop, mails)
  const settings = { BILLING_SMTP_URL: url, BILLING_MAIL_FROM: 'billing@pay.example', BILLING_LOG_LEVEL: 'warn' }
  const sender = startWorker<'sweep', number>('../test/trials/steady-sweeps.ts', testEnvironment(settings))
  try {
    const heapsKb: number[] = []
    for (let sweep = 0; sweep < sweeps; sweep += 1) {
      await makeDue(shop, sweep * mailsPerSweep, mailsPerSweep)
      heapsKb.push(Math.round((await sender.ask('sweep')) / 1024))
    }
    const sent = (await mailbox.ask('count')).mails
    if (sent !== mails) throw new Error(`${sent} mails of ${mails} came`)
    // The first sweep loads and compiles.
    const [firstHeapKb, lastHeapKb] = [heapsKb[1] ?? NaN, heapsKb.at(-1) ?? NaN]
    if (!(lastHeapKb - firstHeapKb <= mostGrowthKb)) throw new Error(`the heap grew: ${heapsKb.join(', ')} KB`)
    return { mails, firstHeapKb, lastHeapKb }
  } finally {
    await Promise.all([mailbox.stop(), sender.stop()])
  }
}

/** Subscriptions of as many customers, none of them due. */
async function addPeriods(shop: Shop, count: number): Promise<void> {
  const { ctx, app } = shop
  const first = firstCopy(shop)
  const customer = await findCustomer(ctx.db, app.app.id, parseId('cus', shop.customer) ?? 0)
  if (!customer) throw new Error('the shop has no customer')
  const named = (number: number) => ({ id: first + number, email: `customer-${number}@example.com` })
  await copyRow(ctx.db, customers, customer, count, named)
  await addSubscriptions(shop, count, (number) => ({ customerId: first + number }))
  // A sandbox app may not send so many in a day.
  await ctx.db.query('UPDATE apps SET is_sandbox = 0')
}

/** The periods of these end in two days, and began long ago. */
async function makeDue(shop: Shop, from: number, count: number): Promise<void> {
  const { ctx } = shop
  const now = ctx.clock.now()
  const first = firstCopy(shop) + from
  await ctx.db.run('UPDATE subscriptions SET period_start = ?, current_period_end = ? WHERE id >= ? AND id < ?', [
    addMs(now, -20 * DAY_MS),
    addMs(now, 2 * DAY_MS),
    first,
    first + count,
  ])
}
