import { setTimeout as delay } from 'node:timers/promises'
import { request } from 'undici'
import { loadConfig } from '#config/config.ts'
import type { Context } from '#context.ts'
import { embeddedSetup } from '#embedded/setup.ts'
import { openContext } from '#open-context.ts'
import { requireCleanLedger } from '../support/clean-ledger.ts'
import { testEnvironment } from '../support/context.ts'
import { startDaemonProcess, type DaemonProcess } from '../support/daemon-process.ts'
import { processesWith } from '../support/processes.ts'
import { Receiver } from '../support/receiver.ts'
import { query } from '../support/database.ts'
import { scratchFolder } from '../support/scratch.ts'
import { aShopWithWebhooks, choose, openCheckouts } from './shop.ts'

/** What happens to the server: a clean stop, kill -9, or a freeze. Its supervisor restarts it. */
export type DatabaseOutage = 'restart' | 'kill' | 'freeze'
export const DATABASE_OUTAGES: readonly DatabaseOutage[] = ['restart', 'kill', 'freeze']

export interface OutageOptions {
  /** The outages of one daemon's server, in order. */
  readonly outages: readonly DatabaseOutage[]
  /** Test payments around each outage, half of them before it; each of a different end user. */
  readonly payments: number
  readonly payers: number
  /** The duration of a freeze. */
  readonly frozenMs: number
}

export interface DatabaseOutageFigures {
  readonly outage: DatabaseOutage
  readonly payments: number
  /** Answers 503 and 429 in the error envelope. */
  readonly refused: number
  readonly slowestMs: number
  /** From the end of the server, or of its freeze, until a payment was answered. */
  readonly recoveryMs: number
  readonly unreadyPolls: number
}

interface Tally {
  paid: number
  refused: number
  slowestMs: number
  /** The end of the server, or of its freeze, and the answer to the first payment that began after it. */
  awayMs: number
  recoveredMs: number
}

const RECOVERY_MS = 10_000
/** The longest time of a request, whatever the database does. */
const LONGEST_REQUEST_MS = 12_000
const RETRY_MS = 100
const POLL_MS = 50

/**
 * Pays over HTTP during outages of the daemon's own database server. Throws if a request is cut off, takes too long, or is answered
 * with anything but success or a retryable error; if payments do not continue soon afterwards; if the daemon reports that it is not
 * alive, or does not become ready again; if an answered payment is not complete; if the ledger has a discrepancy. Whether `/readyz`
 * reported the outage is only counted: its answer may be a second old, and the server is back sooner.
 */
export async function databaseOutage(options: OutageOptions): Promise<DatabaseOutageFigures[]> {
  const home = scratchFolder('outage')
  const receiver = await Receiver.start()
  const environment = {
    BILLING_DATABASE_URL: '',
    // Leases follow this timeout: short, so that a lease from a commit without an answer expires soon.
    BILLING_WEBHOOK_TIMEOUT_MS: '500',
    BILLING_HOME: home,
    BILLING_WEBHOOK_RETRY_MINUTES: '0.02,0.05,0.1,0.2',
  }
  const daemon = await startDaemonProcess(environment)
  const { ctx, close } = await openContext({ config: loadConfig(testEnvironment(environment)), thread: 'trial' })
  try {
    const shop = await aShopWithWebhooks(ctx, receiver)
    const figures: DatabaseOutageFigures[] = []
    for (const outage of options.outages) {
      const tokens = await openCheckouts(ctx, shop, `${outage}-${figures.length}`, options.payments)
      figures.push(await payThrough(daemon, home, tokens, outage, options))
      await checkBooks(ctx, receiver, figures.length * options.payments, outage)
    }
    checkLog(daemon)
    const code = await daemon.stop()
    if (code !== 0) throw new Error(`the daemon ended with ${code ?? 'a signal'}`)
    return figures
  } finally {
    await daemon.stop()
    await close()
    await receiver.stop()
    await untilGone(home)
  }
}

async function payThrough(
  daemon: DaemonProcess,
  home: string,
  tokens: readonly string[],
  outage: DatabaseOutage,
  { payments, payers, frozenMs }: OutageOptions,
): Promise<DatabaseOutageFigures> {
  const tally: Tally = { paid: 0, refused: 0, slowestMs: 0, awayMs: Infinity, recoveredMs: 0 }
  // Some begin after the outage, however fast the first ones are: they show when payments continue.
  const first = tokens.slice(0, -payers)
  const last = tokens.slice(-payers)
  const pay = async (waiting: string[]): Promise<void> => {
    for (let token = waiting.shift(); token; token = waiting.shift()) await payUntilAnswered(daemon, token, tally)
  }
  const paying = Promise.all(Array.from({ length: payers }, () => pay(first)))
  // Awaited below; an earlier failure must not count as unhandled.
  paying.catch(() => undefined)
  const health = watchHealth(daemon)
  try {
    while (tally.paid < payments / 2 && first.length > 0) await delay(5)
    await takeAway(home, outage, frozenMs)
    tally.awayMs = performance.now()
    await Promise.all([paying, ...last.map((token) => pay([token]))])
    await untilReady(daemon)
  } finally {
    await health.end()
  }
  const recoveryMs = Math.round(tally.recoveredMs - tally.awayMs)
  if (!(recoveryMs >= 0 && recoveryMs <= RECOVERY_MS)) throw new Error(`payments continued after ${recoveryMs} ms`)
  if (tally.slowestMs > LONGEST_REQUEST_MS) throw new Error(`a payment took ${Math.round(tally.slowestMs)} ms`)
  const { refused, slowestMs } = tally
  return { outage, payments, refused, slowestMs: Math.round(slowestMs), recoveryMs, unreadyPolls: health.unready() }
}

async function payUntilAnswered(daemon: DaemonProcess, token: string, tally: Tally): Promise<void> {
  for (;;) {
    const startedMs = performance.now()
    const { status, text } = await choose(daemon, token, 'test')
    tally.slowestMs = Math.max(tally.slowestMs, performance.now() - startedMs)
    if (status === 200) {
      tally.paid += 1
      if (startedMs > tally.awayMs) tally.recoveredMs ||= performance.now()
      return
    }
    // 429: it waited for the database for 2 s, and nothing was done.
    const { error } = JSON.parse(text) as { error: { code: string } }
    const refusal = `${status} ${error.code}`
    if (refusal !== '503 service_unavailable' && refusal !== '429 rate_limited') {
      const failure = daemon.logged.findLast((line) => line.includes('a request failed')) ?? ''
      throw new Error(`a payment answered ${refusal} ${failure}`)
    }
    tally.refused += 1
    await delay(RETRY_MS)
  }
}

/** Ends or freezes the server; returns when it has ended, or continues. */
async function takeAway(home: string, outage: DatabaseOutage, frozenMs: number): Promise<void> {
  const [server, ...others] = serversOf(home)
  if (server === undefined || others.length > 0) throw new Error('expected exactly one server')
  if (outage === 'freeze') {
    process.kill(server, 'SIGSTOP')
    try {
      await delay(frozenMs)
    } finally {
      process.kill(server, 'SIGCONT')
    }
    return
  }
  process.kill(server, outage === 'kill' ? 'SIGKILL' : 'SIGTERM')
  while (serversOf(home).includes(server)) await delay(5)
}

/** The process of this trial's server, identified by its data directory. */
function serversOf(home: string): number[] {
  const { dataDirectory } = embeddedSetup(home)
  return processesWith((argument) => argument === `--datadir=${dataDirectory}`)
}

async function untilGone(home: string): Promise<void> {
  while (serversOf(home).length > 0) await delay(POLL_MS)
}

/** Polls `/healthz`, which must always report up, and `/readyz`, which may report not ready. */
function watchHealth({ url }: DaemonProcess): { unready: () => number; end: () => Promise<void> } {
  let isOver = false
  let unready = 0
  const watching = (async () => {
    while (!isOver) {
      const [alive, ready] = await Promise.all([request(`${url}/healthz`), request(`${url}/readyz`)])
      await Promise.all([alive.body.dump(), ready.body.dump()])
      if (alive.statusCode !== 200) throw new Error(`/healthz said ${alive.statusCode}`)
      if (ready.statusCode !== 200 && ready.statusCode !== 503) throw new Error(`/readyz said ${ready.statusCode}`)
      if (ready.statusCode === 503) unready += 1
      await delay(POLL_MS)
    }
  })()
  watching.catch(() => undefined)
  return {
    unready: () => unready,
    end: () => {
      isOver = true
      return watching
    },
  }
}

async function untilReady({ url }: DaemonProcess): Promise<void> {
  const deadlineMs = performance.now() + RECOVERY_MS
  while (performance.now() < deadlineMs) {
    const answer = await request(`${url}/readyz`)
    await answer.body.dump()
    if (answer.statusCode === 200) return
    await delay(POLL_MS)
  }
  throw new Error('the daemon does not become ready again')
}

async function checkBooks(ctx: Context, receiver: Receiver, payments: number, outage: DatabaseOutage): Promise<void> {
  const delivered = () => new Set(receiver.received.map(({ body }) => body.data.external_ref)).size
  const deadlineMs = performance.now() + 60_000
  while (delivered() < payments) {
    if (performance.now() > deadlineMs) throw new Error(`${payments - delivered()} of ${payments} events never arrived`)
    await delay(POLL_MS)
  }
  const checked = await requireCleanLedger(ctx, `after ${outage}`)
  if (checked !== payments) throw new Error(`${checked} subscriptions for ${payments} payments`)
  const [row]: { open: string }[] = await query(
    ctx.db,
    `SELECT COUNT(*) AS open FROM transactions WHERE status <> 'completed'`,
  )
  if (Number(row!.open) > 0) throw new Error(`${row!.open} answered payments are not complete`)
}

/** Jobs may fail with the database, but must not be treated as hung while they wait for it. */
function checkLog({ logged }: DaemonProcess): void {
  const hung = logged.find((line) => /"reason":"(hung|overdue)"/.test(line))
  if (hung) throw new Error(`a job was treated as hung: ${hung}`)
}
