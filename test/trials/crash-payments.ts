import { setTimeout as delay } from 'node:timers/promises'
import { verifyLedger } from '#ledger/verify-ledger.ts'
import { startDaemonProcess, type DaemonProcess } from '../support/daemon-process.ts'
import { Receiver } from '../support/receiver.ts'
import { presentContext, type TestContext } from '../support/context.ts'
import { until } from '../support/until.ts'
import { aShopWithWebhooks, choose, openCheckouts } from './shop.ts'

export interface CrashOptions {
  /** Concurrent test payments, each of a different end user. */
  readonly payments: number
  /** How often the daemon is killed with -9 and restarted meanwhile. */
  readonly kills: number
}

const DEADLINE_MS = 150_000
/** The pause of a payer before a retry. */
const RETRY_MS = 200

/**
 * Pays many checkouts over HTTP while the daemon is killed and restarted. Throws if an answered payment is not complete, if an
 * interrupted one cannot be completed by a retry, if an event never arrives, or if the ledger has a discrepancy.
 */
export async function crashPayments({ payments, kills }: CrashOptions) {
  const startedMs = performance.now()
  const receiver = await Receiver.start()
  const ctx = presentContext()
  const tokens = await openCheckouts(ctx, await aShopWithWebhooks(ctx, receiver), 'user', payments)
  const running = { daemon: await start() }
  /** An attempt is unanswered if a kill cut it off, or if it found no daemon. */
  const tally = { answered: 0, unanswered: 0 }
  try {
    const paying = Promise.all(tokens.map((token) => payUntilAnswered(running, token, tally)))
    // Awaited below; an earlier failure must not count as unhandled.
    paying.catch(() => undefined)
    for (let kill = 1; kill <= kills; kill += 1) {
      const enough = Math.floor((payments * kill) / (kills + 2))
      await Promise.race([until(() => tally.answered >= enough), paying])
      await running.daemon.kill()
      running.daemon = await start()
    }
    await paying
    await allTold(receiver, payments)
  } finally {
    await running.daemon.stop()
    await receiver.stop()
  }
  await checkBooks(ctx, payments)
  const distinct = new Set(receiver.received.map(({ eventId }) => eventId))
  return {
    payments,
    kills,
    ...tally,
    webhooks: distinct.size,
    repeated: receiver.received.length - distinct.size,
    seconds: Math.round((performance.now() - startedMs) / 100) / 10,
  }
}

// Leases follow this timeout: short, so that the lease of a killed sender expires soon.
const start = () =>
  startDaemonProcess({ BILLING_WEBHOOK_TIMEOUT_MS: '1000', BILLING_WEBHOOK_RETRY_MINUTES: '0.01,0.02,0.05,0.1,0.2' })

class Refused extends Error {
  override readonly name = 'Refused'
}

async function payUntilAnswered(
  running: { daemon: DaemonProcess },
  token: string,
  tally: { answered: number; unanswered: number },
): Promise<void> {
  const deadlineMs = performance.now() + DEADLINE_MS
  for (;;) {
    try {
      const { status, text } = await choose(running.daemon, token, 'test')
      if (status === 200) {
        tally.answered += 1
        return
      }
      // While it starts, a daemon answers 503.
      if (status !== 503 || performance.now() > deadlineMs) {
        throw new Refused(`a payment was answered ${status}: ${text}`)
      }
    } catch (error) {
      if (performance.now() > deadlineMs || error instanceof Refused) throw error
      tally.unanswered += 1
    }
    await delay(RETRY_MS)
  }
}

async function allTold(receiver: Receiver, payments: number): Promise<void> {
  const delivered = () => new Set(receiver.received.map(({ body }) => body.data.external_ref)).size
  const deadlineMs = performance.now() + DEADLINE_MS
  while (delivered() < payments) {
    if (performance.now() > deadlineMs) throw new Error(`${payments - delivered()} of ${payments} events never arrived`)
    await delay(50)
  }
  if (receiver.received.some(({ verified }) => verified !== true))
    throw new Error('a webhook came with a wrong signature')
}

async function checkBooks(ctx: TestContext, payments: number): Promise<void> {
  const report = await verifyLedger(ctx, null)
  if (report.faults.length > 0) throw new Error(`the ledger has discrepancies: ${JSON.stringify(report.faults)}`)
  if (report.checked !== payments) throw new Error(`${report.checked} subscriptions for ${payments} payments`)
  const rows: { n: string | number }[] = await ctx.db.query(
    "SELECT COUNT(*) AS n FROM transactions WHERE status <> 'completed'",
  )
  if (Number(rows[0]?.n) > 0) throw new Error(`${rows[0]?.n} answered payments are not complete`)
}
