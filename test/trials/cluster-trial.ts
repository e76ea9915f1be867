import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { request } from 'undici'
import { signRequest } from '#apps/call-signature.ts'
import { runMigrations } from '#db/migrate.ts'
import { checkDatabase } from '#doctor/check-database.ts'
import { messageOf } from '#shared/errors.ts'
import { randomHex } from '#shared/crypto.ts'
import { parseTimestamp, systemClock, unixSeconds } from '#shared/time.ts'
import { requireCleanLedger } from '../support/clean-ledger.ts'
import { presentContext, type TestContext } from '../support/context.ts'
import { startDaemonProcess, type DaemonProcess } from '../support/daemon-process.ts'
import { openTestDb } from '../support/database.ts'
import type { TestApp } from '../support/factories.ts'
import { mapConcurrently } from '../support/map-concurrently.ts'
import { Receiver } from '../support/receiver.ts'
import { scratchFolder } from '../support/scratch.ts'
import { aShopWithWebhooks, remindersFallDue, type Shop } from './shop.ts'

export interface ClusterOptions {
  /** In each part of the trial. */
  readonly payments: number
  readonly endUsers: number
  /** Subscriptions whose first reminder is due in the undisturbed part, and again when a node is killed. */
  readonly reminders: number
  /** Concurrent payers. */
  readonly payers: number
}

export interface ClusterFigures {
  /** Each confirmed at two nodes at once. */
  readonly payments: number
  readonly parts: readonly PartFigures[]
  readonly webhooks: number
  /** Webhooks that were repeated because their outcome was lost with a node. */
  readonly repeated: number
  readonly mails: number
  /** Mails that may or may not have been sent because their node died meanwhile: they are not sent again. */
  readonly unconfirmed: number
  readonly retries: number
}

export interface PartFigures {
  readonly part: string
  readonly perSecond: number
  /** Answers 503 and 429, which say when to try again. */
  readonly deferred: number
  readonly slowestMs: number
  /** From the event until the answer to the first payment that began after it. */
  readonly recoveryMs?: number
}

const SUCCESS = 'https://shop.example/ok'
const DEADLINE_MS = 120_000
/** The longest time of a request, whatever the database does. */
const LONGEST_REQUEST_MS = 12_000
const POLL_MS = 50
const PLAN_EVERY = 10
const MAX_DEFERRED_SHARE = 0.01
const UNCONFIRMED_SECONDS = 15

/** Three database servers that fail for a trial. */
export interface Cluster {
  /** `BILLING_DATABASE_URL` with all nodes, the named one first. */
  url(first?: number): string
}

/**
 * Three daemons on a cluster of three nodes, each using another node where that takes writes, sell to a few end users at the same time,
 * undisturbed and while `runParts` makes nodes fail. Throws if an answer takes too long or is neither success nor a retryable error, if an
 * acknowledged payment is missing on another node or lost later, if a payment counts twice, if an attempt of a webhook or a mail is sent
 * twice, or if the ledger has a discrepancy.
 */
export async function onCluster<C extends Cluster>(
  cluster: C,
  options: ClusterOptions,
  runParts: (trial: ClusterTrial<C>) => Promise<PartFigures[]>,
): Promise<ClusterFigures> {
  const home = scratchFolder('home')
  const receiver = await Receiver.start()
  const daemons: DaemonProcess[] = []
  const { db, close } = await openTestDb(cluster.url())
  try {
    await runMigrations(db)
    const ctx = { ...presentContext({ BILLING_DATABASE_URL: cluster.url() }), db }
    for (const number of [0, 1, 2]) daemons.push(await startDaemonProcess(settingsOf(cluster, home, number)))
    const shop = await aShopWithWebhooks(ctx, receiver)
    const trial = { cluster, ctx, shop, daemons, options, receiver, home, acknowledged: new Map(), opened: 0 }
    const parts = [await inPeace(trial), ...(await runParts(trial))]
    const deliveries = await untilDelivered(trial)
    await checkBooks(trial)
    const mails = await checkMails(trial)
    const retries = await retriesOf(daemons)
    checkLogs(daemons)
    return { payments: options.payments * parts.length, parts, ...deliveries, ...mails, retries }
  } catch (error) {
    const warned = daemons.flatMap(({ logged }) => logged).filter((line) => !line.startsWith('{"level":"info"'))
    throw new Error(
      `${messageOf(error)}\n${warned
        .slice(-20)
        .map((line) => line.slice(0, 400))
        .join('\n')}`,
      { cause: error },
    )
  } finally {
    await Promise.all(daemons.map((daemon) => daemon.kill()))
    await close()
    await receiver.stop()
  }
}

export interface ClusterTrial<C extends Cluster> extends Trial {
  readonly cluster: C
}

interface Trial {
  readonly ctx: TestContext
  readonly shop: Shop
  readonly daemons: readonly DaemonProcess[]
  readonly options: ClusterOptions
  readonly receiver: Receiver
  readonly home: string
  /** The number of answered payments of each end user. */
  readonly acknowledged: Map<string, number>
  /** Payments begun so far, in all parts. */
  opened: number
}

export interface Tally {
  paid: number
  deferred: number
  slowestMs: number
  /** The time of the event in the cluster, and of the answer to the first payment that began after it. */
  happenedMs: number
  recoveredMs: number
}

function settingsOf(cluster: Cluster, home: string, number: number): Record<string, string> {
  return {
    BILLING_DATABASE_URL: cluster.url(number),
    BILLING_HOME: home,
    BILLING_SWEEP_SECONDS: '0.3',
    // Leases follow this timeout: short, so that those of a dead daemon or node expire during the trial.
    BILLING_WEBHOOK_TIMEOUT_MS: '1000',
    BILLING_WEBHOOK_RETRY_MINUTES: '0.02,0.05,0.1,0.2',
  }
}

async function inPeace(trial: Trial): Promise<PartFigures> {
  await remindersFallDue(trial.ctx, trial.shop, 'due-quiet', trial.options.reminders)
  const figures = await sell(trial, 'in peace', () => Promise.resolve())
  // On a busy machine, conflicts occasionally last for 10 s.
  if (figures.deferred > trial.options.payments * MAX_DEFERRED_SHARE)
    throw new Error(`in peace ${figures.deferred} answers said to try again`)
  await untilDelivered(trial)
  const { events, attempts } = await countEvents(trial.ctx)
  const { length: arrived } = trial.receiver.received
  if (arrived !== events || attempts !== events)
    throw new Error(`in peace: ${events} events, ${attempts} attempts, ${arrived} webhooks`)
  const { mails, unconfirmed } = await checkMails(trial)
  if (mails !== trial.options.reminders || unconfirmed > 0) throw new Error(`in peace: ${mails} mails`)
  return figures
}

/** Payments of several concurrent payers; `happen` is called when half of them are answered. */
export async function sell(
  trial: Trial,
  part: string,
  happen: (tally: Tally) => Promise<void> | void,
): Promise<PartFigures> {
  const { payments, endUsers, payers } = trial.options
  const tally: Tally = { paid: 0, deferred: 0, slowestMs: 0, happenedMs: Infinity, recoveredMs: 0 }
  // Payments of an end user follow each other, so that all payers work on a few end users at a time.
  const numbers = Array.from({ length: payments }, (_, number) => Math.floor((number * endUsers) / payments))
  const startedMs = performance.now()
  const selling = mapConcurrently(numbers, (endUser) => sellOne(trial, tally, `user-${endUser}`), payers)
  selling.catch(() => undefined)
  await Promise.race([selling, until('half is paid', () => tally.paid >= payments / 2)])
  await happen(tally)
  tally.happenedMs = performance.now()
  await selling
  const seconds = (performance.now() - startedMs) / 1000
  if (tally.slowestMs > LONGEST_REQUEST_MS) throw new Error(`${part}: an answer took ${Math.round(tally.slowestMs)} ms`)
  await requireCleanLedger(trial.ctx, part)
  return {
    part,
    perSecond: Math.round((payments / seconds) * 10) / 10,
    deferred: tally.deferred,
    slowestMs: Math.round(tally.slowestMs),
    ...(part === 'in peace' ? {} : { recoveryMs: Math.round(tally.recoveredMs - tally.happenedMs) }),
  }
}

/** One sale: opened at a daemon, confirmed at both others at once, and read where it was opened. */
async function sellOne(trial: Trial, tally: Tally, externalRef: string): Promise<void> {
  const { daemons, shop, acknowledged } = trial
  const number = (trial.opened += 1)
  const [first, second, third] = [0, 1, 2].map((step) => daemons[(number + step) % 3]!) as [
    DaemonProcess,
    DaemonProcess,
    DaemonProcess,
  ]
  const startedMs = performance.now()
  if (number % PLAN_EVERY === 0) await makePlan(trial, tally, first, `plan-of-${number}`)
  const body = {
    external_ref: externalRef,
    mode: 'subscription',
    price_id: shop.price,
    success_url: SUCCESS,
    cancel_url: SUCCESS,
  }
  const key = { 'Idempotency-Key': randomHex(16) }
  const opened = await untilAnswered(tally, () => seller(shop.app, first, 'POST', '/checkout-sessions', body, key))
  const token = /[0-9a-f]{64}$/.exec((opened as { checkout_url: string }).checkout_url)![0]
  const confirm = (daemon: DaemonProcess) =>
    untilAnswered(tally, () =>
      call(daemon, 'POST', `/checkout/${token}/resolve`, JSON_BODY, JSON.stringify({ payment_method: 'test' })),
    )
  await Promise.all([confirm(second), confirm(third)])
  const paid = (acknowledged.get(externalRef) ?? 0) + 1
  acknowledged.set(externalRef, paid)
  const subscription = await untilAnswered(tally, () => seller(shop.app, first, 'GET', `/subscriptions/${externalRef}`))
  const months = monthsUntil(subscription as { current_period_end: string })
  if (months < paid) throw new Error(`${externalRef} has ${months} months after ${paid} payments`)
  tally.paid += 1
  if (startedMs > tally.happenedMs) tally.recoveredMs ||= performance.now()
}

/** Without an Idempotency-Key: if a node dies at the commit, only the daemon can know that it created the plan. */
async function makePlan({ shop }: Trial, tally: Tally, daemon: DaemonProcess, code: string): Promise<void> {
  const prices = [{ amount: 10_000, currency: 'VND', interval_unit: 'month', interval_count: 1 }]
  let tries = 0
  await untilAnswered(tally, () => {
    tries += 1
    return seller(shop.app, daemon, 'POST', '/plans', { code: `${code}-${tries}`, name: code, prices })
  })
}

function monthsUntil({ current_period_end: text }: { readonly current_period_end: string }): number {
  const [now, end] = [systemClock.now(), parseTimestamp(text)!]
  return (end.getUTCFullYear() - now.getUTCFullYear()) * 12 + end.getUTCMonth() - now.getUTCMonth()
}

interface Answer {
  readonly status: number
  readonly retryAfter: string | null
  readonly body: { readonly data?: unknown; readonly error?: { readonly code: string; readonly message: string } }
}

const JSON_BODY = { 'content-type': 'application/json' }

/** Repeats the call until it succeeds; any other answer must be retryable. Returns `data`. */
async function untilAnswered(tally: Tally, ask: () => Promise<Answer>): Promise<unknown> {
  const deadlineMs = performance.now() + DEADLINE_MS
  for (;;) {
    const startedMs = performance.now()
    const { status, retryAfter, body } = await ask()
    tally.slowestMs = Math.max(tally.slowestMs, performance.now() - startedMs)
    if (status === 200 || status === 201) return body.data
    const isDeferred = [429, 503].includes(status) || body.error?.code === 'idempotency_conflict'
    if (!isDeferred || retryAfter === null) throw new Error(`answered ${status}: ${JSON.stringify(body.error)}`)
    if (performance.now() > deadlineMs) throw new Error(`still ${status} after ${DEADLINE_MS} ms`)
    tally.deferred += 1
    await delay(Number(retryAfter) * 1000)
  }
}

function seller(
  { apiKey, secret }: TestApp,
  daemon: DaemonProcess,
  method: 'GET' | 'POST',
  path: string,
  body?: object,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const target = `/api/v1${path}`
  const text = body === undefined ? '' : JSON.stringify(body)
  const timestamp = String(unixSeconds(systemClock.now()))
  const signature = signRequest(secret, timestamp, { method, target, body: Buffer.from(text) })
  const signed = { 'X-App-Key': apiKey, 'X-Timestamp': timestamp, 'X-Signature': signature, ...headers }
  return call(daemon, method, target, { ...signed, ...(body ? JSON_BODY : {}) }, text)
}

async function call(
  { url }: DaemonProcess,
  method: 'GET' | 'POST',
  path: string,
  headers: Record<string, string>,
  text = '',
): Promise<Answer> {
  // A kept connection may be closed by the daemon at the moment in which it is used again.
  const answer = await request(url + path, { method, headers, reset: true, ...(text === '' ? {} : { body: text }) })
  const retryAfter = answer.headers['retry-after']
  return {
    status: answer.statusCode,
    retryAfter: typeof retryAfter === 'string' ? retryAfter : null,
    body: (await answer.body.json()) as Answer['body'],
  }
}

/** Waits until every event is delivered; returns the number of webhooks and of repeated ones. No attempt may arrive twice. */
async function untilDelivered({ ctx, receiver }: Trial): Promise<{ webhooks: number; repeated: number }> {
  await until('all events are delivered', async () => (await countEvents(ctx)).open === 0)
  const attempts = receiver.received.map(({ eventId, attempt }) => `${eventId} ${attempt}`)
  const twice = attempts.find((name, index) => attempts.indexOf(name) !== index)
  if (twice !== undefined) throw new Error(`an attempt came twice: ${twice}`)
  if (receiver.received.some(({ verified }) => verified !== true)) throw new Error('a webhook had a wrong signature')
  const webhooks = new Set(receiver.received.map(({ eventId }) => eventId)).size
  return { webhooks, repeated: attempts.length - webhooks }
}

async function countEvents({ db }: TestContext): Promise<{ events: number; attempts: number; open: number }> {
  const [row]: Record<string, string>[] = await db.query(
    `SELECT COUNT(*) AS events, COALESCE(SUM(attempts), 0) AS attempts,
       COALESCE(SUM(delivery_status <> 'delivered'), 0) AS open FROM events`,
  )
  return { events: Number(row!['events']), attempts: Number(row!['attempts']), open: Number(row!['open']) }
}

/** Each due mail was sent once, or is listed as unconfirmed. */
async function checkMails({ ctx, home, daemons }: Trial): Promise<{ mails: number; unconfirmed: number }> {
  const due = (await ctx.db.query<unknown[]>("SELECT id FROM customers WHERE email LIKE 'due-%'")).length
  await until('all mails are sent', async () => (await settled(ctx)).length >= due)
  const mails = await settled(ctx)
  const sent = mails.filter(({ status }) => status === 'sent').length
  const folder = join(home, 'mail')
  const texts = readdirSync(folder).map((name) => readFileSync(join(folder, name), 'utf8'))
  const receivers = texts.map((mail) => /^To: .*?(due-[\w-]+@example\.com)/m.exec(mail)?.[1])
  // A second copy of a mail replaces the file of the first, but is logged.
  const written = daemons.flatMap(({ logged }) => logged).filter((line) => line.includes('mail written to a file'))
  if (new Set(receivers).size !== receivers.length || written.length > receivers.length)
    throw new Error('a customer got a mail twice')
  if (receivers.length < sent || receivers.length > due)
    throw new Error(`${due} mails were due, ${sent} are noted as sent, ${receivers.length} left`)
  return { mails: receivers.length, unconfirmed: mails.length - sent }
}

/** Mails that are noted as sent, or that were handed over so long ago that their daemon has lost its node meanwhile. */
const settled = ({ db }: TestContext): Promise<readonly { status: string }[]> =>
  db.query(
    `SELECT status FROM reminders
     WHERE status = 'sent' OR handed_over_at < UTC_TIMESTAMP(3) - INTERVAL ${UNCONFIRMED_SECONDS} SECOND`,
  )

/** Each end user has what their payments bought, and each payment exists once. */
async function checkBooks({ ctx, acknowledged, options }: Trial): Promise<void> {
  const rows: { ref: string; payments: string }[] = await ctx.db.query(
    `SELECT s.external_ref AS ref, COUNT(a.id) AS payments
     FROM subscriptions s JOIN payment_applications a ON a.subscription_id = s.id AND a.transaction_id IS NOT NULL
     WHERE s.external_ref LIKE 'user-%' GROUP BY s.external_ref`,
  )
  if (rows.length !== options.endUsers) throw new Error(`${rows.length} end users have subscriptions`)
  for (const { ref, payments } of rows)
    if (Number(payments) !== acknowledged.get(ref))
      throw new Error(`${ref} was answered ${acknowledged.get(ref)} payments and has ${payments}`)
  // The clock of this context stands still.
  const findings = (await checkDatabase(ctx)).filter(({ check }) => check !== 'clock')
  const wrong = findings.find(({ ok, fix }) => !ok || fix !== null)
  if (wrong) throw new Error(`doctor says: ${wrong.detail}`)
}

export async function readiness({ daemons }: Trial): Promise<number[]> {
  return Promise.all(
    daemons.map(async ({ url }) => {
      const answer = await request(`${url}/readyz`)
      await answer.body.dump()
      return answer.statusCode
    }),
  )
}

export async function untilReady(trial: Trial): Promise<void> {
  await until('all daemons are ready', async () => (await readiness(trial)).every((status) => status === 200))
}

export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadlineMs = performance.now() + DEADLINE_MS
  while (!(await holds())) {
    if (performance.now() > deadlineMs) throw new Error(`not in ${DEADLINE_MS} ms: ${what}`)
    await delay(POLL_MS)
  }
}

/** Transactions that were retried. */
async function retriesOf(daemons: readonly DaemonProcess[]): Promise<number> {
  const counts = await Promise.all(
    daemons.map(async ({ url }) => {
      const answer = await request(`${url}/metrics`)
      const text = await answer.body.text()
      return Number(/^\w*transaction_retries_total (\d+)$/m.exec(text)?.[1] ?? 0)
    }),
  )
  return counts.reduce((sum, count) => sum + count, 0)
}

/** No job is treated as hung because it waits for its node. */
function checkLogs(daemons: readonly DaemonProcess[]): void {
  const hung = daemons.flatMap(({ logged }) => logged).find((line) => /"reason":"(hung|overdue)"/.test(line))
  if (hung) throw new Error(`a job was treated as hung: ${hung}`)
}
