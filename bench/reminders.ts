import { join } from 'node:path'
import { customers, findCustomer } from '#customers/store.ts'
import { parseId } from '#shared/ids.ts'
import { DAY_MS, addMs } from '#shared/time.ts'
import { composeReminder } from '#renewals/compose-reminder.ts'
import { findDue } from '#renewals/find-due.ts'
import { testEnvironment } from '../test/support/context.ts'
import type { MailOrder } from './floors/nodemailer.ts'
import { profiled } from './profiled.ts'
import { countRounds, inRounds, type Bench } from './row.ts'
import { addSubscriptions, copyRow, firstCopy, openShop, type Shop } from './shop.ts'
import { startWorker } from './worker.ts'
import type { MailboxState } from './workers/mailbox.ts'

const COUNT = 600
const QUICK = 20

/** Mails of the first stage, each to a customer of its own, over SMTP on loopback. */
export const reminderBench: Bench = {
  rows: [
    {
      name: 'reminders',
      what: 'reminder mails',
      floor: 'pooled nodemailer, ready body',
      unit: 'a second',
      judged: 'share',
      must: 0.6,
      goal: 0.7,
    },
  ],
  async run(options) {
    const count = options.isQuick ? QUICK : COUNT
    const mailbox = startWorker<'count', MailboxState>(join('workers', 'mailbox.ts'))
    const { url } = await mailbox.ask('count')
    const shop = await openShop()
    await addPeriods(shop, count * countRounds(options))
    const mail = await readyMail(shop)
    const sender = { BILLING_SMTP_URL: url, BILLING_MAIL_FROM: 'billing@pay.example' }
    const ours = startWorker<'remind', number>(
      join('workers', 'remind.ts'),
      testEnvironment({ ...sender, BILLING_LOG_LEVEL: 'warn', ...profiled('reminders') }),
    )
    const floor = startWorker<MailOrder, number>(join('floors', 'nodemailer.ts'))
    /** Mails a second. */
    const measure = async (send: () => Promise<number>): Promise<number> => {
      await mailbox.ask('count')
      const ms = await send()
      const { mails } = await mailbox.ask('count')
      if (mails !== count) throw new Error(`${mails} mails of ${count} came`)
      return (count / ms) * 1000
    }
    try {
      const rounds = await inRounds(options, async (number) => {
        await makeDue(shop, number * count, count)
        return {
          floor: await measure(() => floor.ask({ url, mail, count })),
          ours: await measure(() => ours.ask('remind')),
        }
      })
      return { reminders: { rounds } }
    } finally {
      await Promise.all([mailbox, ours, floor].map((worker) => worker.stop()))
    }
  },
}

/** Subscriptions of as many customers, none of them due. */
async function addPeriods(shop: Shop, count: number): Promise<void> {
  const { ctx, app } = shop
  const first = firstCopy(shop)
  const customer = await findCustomer(ctx.db, app.app.id, parseId('cus', shop.customer)!)
  await copyRow(ctx.db, customers, customer!, count, (number) => ({
    id: first + number,
    email: `customer-${number}@example.com`,
  }))
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

/** A mail as the service would write it. */
async function readyMail(shop: Shop): Promise<MailOrder['mail']> {
  const { ctx } = shop
  await makeDue(shop, 0, 1)
  for await (const due of findDue(ctx, { scope: 'apps in real time', clockOffsetMs: 0 }, new Set())) {
    const { from, to, subject, text, html } = await composeReminder(ctx.config, due)
    return { from: `${from.name} <${from.address}>`, to: `${to.name} <${to.address}>`, subject, text, html }
  }
  throw new Error('no reminder is due')
}
