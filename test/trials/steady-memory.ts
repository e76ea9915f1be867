import { join } from 'node:path'
import { openShop } from '../../bench/shop.ts'
import { addSubscribers, makeDue } from '../../bench/subscribers.ts'
import { startWorker } from '../../bench/worker.ts'
import type { MailboxState } from '../../bench/workers/mailbox.ts'
import { testEnvironment } from '../support/context.ts'

export interface SteadyMemoryOptions {
  readonly sweeps: number
  readonly mailsPerSweep: number
  /** The heap growth in kilobytes allowed from the second sweep to the last. */
  readonly mostGrowthKb: number
}

/**
 * One process sends reminders sweep after sweep. Throws if a mail is missing, or if its heap, after a garbage collection, has
 * grown by more than is allowed.
 */
export async function steadyMemory(options: SteadyMemoryOptions) {
  const { sweeps, mailsPerSweep, mostGrowthKb } = options
  const mails = sweeps * mailsPerSweep
  const mailbox = startWorker<'count', MailboxState>(join('workers', 'mailbox.ts'))
  const { url } = await mailbox.ask('count')
  const shop = await openShop()
  await addSubscribers(shop, mails)
  const settings = { BILLING_SMTP_URL: url, BILLING_MAIL_FROM: 'billing@pay.example', BILLING_LOG_LEVEL: 'warn' }
  const sender = startWorker<'sweep', number>('../test/trials/steady-sweeps.ts', testEnvironment(settings))
  try {
    const heapsKb: number[] = []
    for (let sweep = 0; sweep < sweeps; sweep += 1) {
      await makeDue(shop, sweep * mailsPerSweep, mailsPerSweep)
      heapsKb.push(Math.round((await sender.ask('sweep')) / 1024))
    }
    const sent = (await mailbox.ask('count')).mails
    if (sent !== mails) throw new Error(`${sent} of ${mails} mails arrived`)
    // The first sweep loads and compiles code.
    const [firstHeapKb, lastHeapKb] = [heapsKb[1] ?? NaN, heapsKb.at(-1) ?? NaN]
    if (!(lastHeapKb - firstHeapKb <= mostGrowthKb)) throw new Error(`the heap grew: ${heapsKb.join(', ')} KB`)
    return { mails, firstHeapKb, lastHeapKb }
  } finally {
    await Promise.all([mailbox.stop(), sender.stop()])
  }
}
