import { join } from 'node:path'
import { composeReminder } from '#mails/reminders/compose-reminder.ts'
import { findDue } from '#mails/reminders/find-due.ts'
import { testEnvironment } from '../test/support/context.ts'
import type { MailOrder } from './floors/nodemailer.ts'
import { profiled } from './profiled.ts'
import { countRounds, inRounds, type Bench } from './row.ts'
import { openShop, type Shop } from './shop.ts'
import { addSubscribers, makeDue } from './subscribers.ts'
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
    await addSubscribers(shop, count * countRounds(options))
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

/** A mail as the service would write it. */
async function readyMail(shop: Shop): Promise<MailOrder['mail']> {
  const { ctx } = shop
  await makeDue(shop, 0, 1)
  for await (const due of findDue(ctx, { scope: 'apps in real time', clockOffsetMs: 0 }, new Set())) {
    const { from, to, subject, text, html } = await composeReminder(ctx.config, due)
    const [sender = '', receiver = ''] = [from, ...to].map(({ name, address }) => `${name} <${address}>`)
    return { from: sender, to: receiver, subject, text, html }
  }
  throw new Error('no reminder is due')
}
