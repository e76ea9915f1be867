import { listApps, type App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { databaseNow } from '#db/database-now.ts'
import { lastSignOf, listLastJobRuns, type JobRun } from '#upkeep/job-runs/store.ts'
import { countAbandoned, countFailedWrites, listAppsWithUnwritten } from '#realtime/store.ts'
import { countHeldBack } from '#mails/reminders/plan-reminders.ts'
import { refusedReminders, unconfirmedReceipts, unconfirmedReminders } from '#mails/mail-lists.ts'
import { counted } from '#shared/counted.ts'
import { MINUTE_MS, SECOND_MS, addMs, formatUtc } from '#shared/time.ts'
import { failed, passed, warning, type CheckResult } from '#shared/check-result.ts'
import { listWebhookStandings, readOutbox, type WebhookStanding } from './store.ts'

/** The jobs of the daemon; a test holds them against its schedule. */
export const JOBS = ['deliver-webhooks', 'send-reminders', 'expire', 'reconcile', 'alerts'] as const

/** A healthy job records a run every minute, besides its sweeps. */
const RUN_RECORDED_MS = 5 * MINUTE_MS
const OVERDUE_MS = 5 * MINUTE_MS
/** Beyond this, a larger number changes nothing that an operator does. */
const MAX_COUNTED = 100_000
const START = 'start the daemon (systemctl start billing-daemon, or bin/billing-daemon); its log says why it stopped'

/** When each job last ran, and how that ended. */
export async function checkJobs(ctx: Context): Promise<CheckResult[]> {
  const runs = new Map((await listLastJobRuns(ctx.db)).map((run) => [run.job, run]))
  if (runs.size === 0)
    return [warning('jobs', 'no job has run yet: the daemon is not running, or has only just started', START)]
  const unresponsive = JOBS.filter((job) => isUnresponsive(ctx, runs.get(job)))
  if (unresponsive.length === JOBS.length) {
    return [warning('jobs', `the daemon is not running: ${lastRunOf([...runs.values()])}`, START)]
  }
  return JOBS.map((job) => jobResult(job, runs.get(job), unresponsive.includes(job)))
}

function isUnresponsive(ctx: Context, run: JobRun | undefined): boolean {
  if (!run) return true
  return ctx.clock.now().getTime() - lastSignOf(run).getTime() > silentAfterMs(ctx)
}

/** A job that recorded no run for this long is dead or hangs. */
export function silentAfterMs({ config }: Context): number {
  return RUN_RECORDED_MS + 2 * config.sweepSeconds * SECOND_MS
}

function lastRunOf(runs: readonly JobRun[]): string {
  const last = runs.reduce((a, b) => (lastSignOf(a) > lastSignOf(b) ? a : b))
  return `the last run, ${last.job}, was at ${formatUtc(lastSignOf(last))}`
}

function jobResult(job: string, run: JobRun | undefined, isOverdue: boolean): CheckResult {
  const look = `look for "${job}" in the daemon's log (journalctl -u billing-daemon)`
  if (!run) return warning('jobs', `${job}: never ran`, look)
  const at = `at ${formatUtc(lastSignOf(run))}`
  if (run.outcome !== 'done' && run.outcome !== null) {
    const { error } = (run.summary ?? {}) as { error?: unknown }
    return failed('jobs', `${job}: ${run.outcome} ${at}${typeof error === 'string' ? `: ${error}` : ''}`, look)
  }
  if (isOverdue) return failed('jobs', `${job}: unresponsive since ${formatUtc(lastSignOf(run))}`, look)
  return passed('jobs', `${job}: ${run.outcome ?? 'began'} ${at}`)
}

/** Apps that do not take their webhooks. */
export async function checkWebhooks(ctx: Context): Promise<CheckResult[]> {
  const [standings, apps] = await Promise.all([listWebhookStandings(ctx.db), listApps(ctx.db)])
  const running = apps.filter(({ disabledAt }) => disabledAt === null)
  const live = new Set(running.filter(({ isSandbox }) => !isSandbox).map(({ id }) => id))
  const results = [
    ...running
      .filter(({ webhookUrl, webhookSecret }) => webhookUrl !== null && webhookSecret === null)
      .map(secretResult),
    // Without an address or a secret nothing can be retried.
    ...standings
      .filter(({ appId }) =>
        apps.some(({ id, webhookUrl, webhookSecret }) => id === appId && webhookUrl && webhookSecret),
      )
      .map((standing) => standingResult(standing, live.has(standing.appId))),
  ]
  if (results.length > 0) return results
  const withoutAddress = running.filter(({ webhookUrl }) => webhookUrl === null).length
  const others = withoutAddress === 0 ? '' : `; ${counted(withoutAddress, 'app')} without a webhook address`
  return [passed('webhooks', `no event has failed${others}`)]
}

function secretResult({ id }: App): CheckResult {
  const fix = `run billing-cli app rotate-webhook-secret ${id}, and give the secret to the app's owner`
  return warning('webhooks', `app ${id}: has a webhook address but no webhook secret, so no events are sent`, fix)
}

/** For a sandbox app or a disabled app, undelivered events are only a warning. */
function standingResult(
  { appId, failed: failures, retrying, failingSince, lastError }: WebhookStanding,
  isLive: boolean,
): CheckResult {
  if (lastError === 'secret_unreadable') {
    const detail = `app ${appId}: its events are held, because its webhook secret cannot be decrypted`
    const fix = `see keys: the events go out within a minute once the key is back; if it is lost, run billing-cli app rotate-webhook-secret ${appId}`
    return failed('webhooks', detail, fix)
  }
  const counts = `${counted(failures, 'event')} failed, ${retrying} waiting for a retry`
  const retry = `webhook retry --failed ${appId}`
  if (failingSince === null) {
    const detail = `app ${appId}: accepts events now; earlier ${counts}`
    return failures === 0 ? passed('webhooks', detail) : warning('webhooks', detail, `run billing-cli ${retry}`)
  }
  return (isLive ? failed : warning)(
    'webhooks',
    `app ${appId}: failing since ${formatUtc(failingSince)}: ${counts}${lastError === null ? '' : `: ${lastError}`}`,
    `contact the app's owner; run billing-cli webhook test ${appId}${failures === 0 ? '' : `, then ${retry}`}`,
  )
}

/** Events that should have gone out. */
export async function checkOutbox(ctx: Context): Promise<CheckResult[]> {
  const { depth, oldestDueAt } = await readOutbox(ctx.db, MAX_COUNTED + 1)
  if (oldestDueAt !== null && oldestDueAt < addMs(await databaseNow(ctx, ctx.db), -OVERDUE_MS)) {
    const detail = `${countedToMax(depth, 'event')} pending; the oldest has been due since ${formatUtc(oldestDueAt)}`
    return [failed('outbox', detail, `if jobs (above) reports a running daemon, check its log; otherwise ${START}`)]
  }
  return [passed('outbox', `${countedToMax(depth, 'event')} pending, none overdue`)]
}

/** Mails that may or may not have been sent, mails to refused addresses, and mails beyond an app's daily limit. */
export async function checkReminders(ctx: Context): Promise<CheckResult[]> {
  const results = [...(await unconfirmedResults(ctx)), ...(await refusedResults(ctx)), ...(await heldBackResults(ctx))]
  return results.length === 0 ? [passed('reminders', 'none unconfirmed, refused or held back')] : results
}

async function heldBackResults(ctx: Context): Promise<CheckResult[]> {
  return (await countHeldBack(ctx)).map(({ app, mails, limit }) => {
    const detail = `app ${app.id}: ${counted(mails, 'mail')} held back until tomorrow (UTC): daily limit of ${limit} reached`
    const plan = `billing-cli reminders plan ${app.id} --days 0 shows them`
    const fix = app.isSandbox
      ? `${plan}; a sandbox app has 200 a day at most`
      : `${plan}; BILLING_MAILS_PER_APP_PER_DAY is the limit`
    return warning('reminders', detail, fix)
  })
}

async function refusedResults(ctx: Context): Promise<CheckResult[]> {
  const [newest] = (await refusedReminders.page(ctx, { limit: '1' })).rows
  if (!newest) return []
  const detail = `${counted(await refusedReminders.count(ctx), 'mail')} to addresses that the mail server permanently refuses, the newest to ${newest.external_ref}`
  const fix =
    'run billing-cli reminders refused; ask the app for the right address, or fix the mail server and add --retry'
  return [warning('reminders', detail, fix)]
}

async function unconfirmedResults(ctx: Context): Promise<CheckResult[]> {
  const [newest] = (await unconfirmedReminders.page(ctx, { limit: '1' })).rows
  if (!newest) return []
  const detail = `${counted(await unconfirmedReminders.count(ctx), 'mail')} may or may not have been sent, the newest reminder ${newest.reminder_id} to ${newest.external_ref}`
  const fix = 'check the mail server’s log, then billing-cli reminders settle <id> --sent or --not-sent'
  return [warning('reminders', detail, fix)]
}

/** Receipts that may or may not have been sent. */
export async function checkReceipts(ctx: Context): Promise<CheckResult[]> {
  const [newest] = (await unconfirmedReceipts.page(ctx, { limit: '1' })).rows
  if (!newest) return [passed('receipts', 'none unconfirmed')]
  const detail = `${counted(await unconfirmedReceipts.count(ctx), 'receipt')} may or may not have been sent, the newest receipt ${newest.receipt_id} of transaction ${newest.transaction_id}`
  const fix = 'check the mail server’s log, then billing-cli receipts settle <id> --sent or --not-sent'
  return [warning('receipts', detail, fix)]
}

/** Realtime nodes whose last write failed or was left unfinished. */
export async function checkRealtime(ctx: Context): Promise<CheckResult[]> {
  const before = addMs(await databaseNow(ctx, ctx.db), -OVERDUE_MS)
  const failures = await countFailedWrites(ctx.db, MAX_COUNTED + 1)
  const abandoned = await countAbandoned(ctx.db, before, MAX_COUNTED + 1)
  if (failures + abandoned === 0) return [passed('realtime', 'no write has failed or was left unfinished')]
  const commands = (await listAppsWithUnwritten(ctx.db, before)).map(
    (appId) => `billing-cli realtime resync ${appId} --failed`,
  )
  const detail = `${countedToMax(failures, 'write')} failed, ${countedToMax(abandoned, 'write')} left unfinished`
  return [failed('realtime', detail, `run ${commands.join(', ')}; the messages say why`)]
}

function countedToMax(count: number, noun: string): string {
  return count > MAX_COUNTED ? `more than ${MAX_COUNTED} ${noun}s` : counted(count, noun)
}
