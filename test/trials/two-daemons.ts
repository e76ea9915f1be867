import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { requireCleanLedger } from '../support/clean-ledger.ts'
import { presentContext, type TestContext } from '../support/context.ts'
import { startDaemonProcess, type DaemonProcess } from '../support/daemon-process.ts'
import { mapConcurrently } from '../support/map-concurrently.ts'
import { Receiver } from '../support/receiver.ts'
import { aShopWithWebhooks, chooseAccepted, openCheckouts, remindersFallDue } from './shop.ts'

export interface TwoDaemonsOptions {
  /** Paid over HTTP, each at one daemon or the other. */
  readonly payments: number
  /** Subscriptions whose first reminder is due. */
  readonly reminders: number
  readonly daemons: number
}

const DEADLINE_MS = 120_000
const POLL_MS = 50

/**
 * Runs several daemons on one database while payments arrive and reminders are due. Throws if a webhook or a mail is sent
 * twice or never, or if the ledger has a discrepancy.
 */
export async function twoDaemons({ payments, reminders, daemons }: TwoDaemonsOptions) {
  const startedMs = performance.now()
  const receiver = await Receiver.start()
  const ctx = presentContext()
  const { home } = ctx.config
  const running: DaemonProcess[] = []
  try {
    const shop = await aShopWithWebhooks(ctx, receiver)
    await remindersFallDue(ctx, shop, 'due', reminders)
    const tokens = await openCheckouts(ctx, shop, 'user', payments)
    const settings = { BILLING_HOME: home, BILLING_SWEEP_SECONDS: '0.2' }
    while (running.length < daemons) running.push(await startDaemonProcess(settings))
    await mapConcurrently([...tokens.entries()], ([number, token]) =>
      chooseAccepted(running[number % daemons]!, token, 'test'),
    )
    await untilQuiet(ctx, reminders)
    const codes = await Promise.all(running.map((daemon) => daemon.stop()))
    if (codes.some((code) => code !== 0)) throw new Error(`the daemons ended with ${codes.join()}`)
    const webhooks = await checkWebhooks(ctx, receiver)
    const mails = checkMails(home, running, reminders)
    await requireCleanLedger(ctx, `after the work of ${daemons} daemons`)
    return { payments, webhooks, mails, seconds: Math.round((performance.now() - startedMs) / 100) / 10 }
  } finally {
    for (const daemon of running) await daemon.stop()
    await receiver.stop()
  }
}

async function untilQuiet(ctx: TestContext, reminders: number): Promise<void> {
  const deadlineMs = performance.now() + DEADLINE_MS
  for (;;) {
    const [row]: { open: string; sent: string }[] = await ctx.db.query(
      `SELECT (SELECT COUNT(*) FROM events WHERE delivery_status <> 'delivered') AS open,
         (SELECT COUNT(*) FROM reminders WHERE status = 'sent') AS sent`,
    )
    if (Number(row!.open) === 0 && Number(row!.sent) === reminders) return
    if (performance.now() > deadlineMs) throw new Error(`still ${row!.open} events, and ${row!.sent} mails sent`)
    await delay(POLL_MS)
  }
}

async function checkWebhooks(ctx: TestContext, receiver: Receiver): Promise<number> {
  const [row]: { events: string; attempts: string }[] = await ctx.db.query(
    'SELECT COUNT(*) AS events, SUM(attempts) AS attempts FROM events',
  )
  const distinct = new Set(receiver.received.map(({ eventId }) => eventId)).size
  const { length: arrived } = receiver.received
  if (arrived !== distinct || distinct !== Number(row!.events) || Number(row!.attempts) !== distinct) {
    throw new Error(`${row!.events} events, ${row!.attempts} attempts, ${arrived} webhooks of ${distinct} events`)
  }
  if (receiver.received.some(({ verified }) => verified !== true))
    throw new Error('a webhook came with a wrong signature')
  return arrived
}

/** One mail for each customer. A second copy of a mail replaces the file of the first, but is logged. */
function checkMails(home: string, daemons: readonly DaemonProcess[], reminders: number): number {
  const written = daemons.flatMap(({ logged }) => logged).filter((line) => line.includes('mail written to a file'))
  const folder = join(home, 'mail')
  const mails = readdirSync(folder).map((name) => readFileSync(join(folder, name), 'utf8'))
  const receivers = mails.map((mail) => /^To: .*?(due-\d+@example\.com)/m.exec(mail)?.[1])
  if (written.length !== reminders || mails.length !== reminders || new Set(receivers).size !== reminders) {
    throw new Error(
      `${written.length} mails in ${mails.length} files to ${new Set(receivers).size} customers of ${reminders}`,
    )
  }
  return mails.length
}
