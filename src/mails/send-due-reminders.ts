import { realTime } from '#apps/app-time.ts'
import type { App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { job } from '#commands/caller.ts'
import { inTransaction } from '#commands/transaction.ts'
import { databaseNow, databasePresent } from '#db/database-now.ts'
import { MAIL_CONNECTIONS, MailError, openMailer, type Mailer } from '#mail/send.ts'
import { messageOf } from '#shared/errors.ts'
import { shuffled } from '#shared/shuffled.ts'
import { DAY_MS, MINUTE_MS, addMs } from '#shared/time.ts'
import { openMailClaimer, type ClaimedMail } from '#mails/claim-mails.ts'
import { composeReminder, type DueReminder } from '#mails/compose-reminder.ts'
import { dailyLimit, findAppsAtLimit } from '#mails/daily-limit.ts'
import { findDue, listSweeps, type Sweep, type Tries } from '#mails/find-due.ts'
import { openSentRecorder, type SentRecorder } from './sent-recorder.ts'
import { stageWindow } from './stages.ts'
import {
  dropClaim,
  releaseClaim,
  hasFailed,
  listDeadClaims,
  markHandedOver,
  noteUnconfirmed,
  refuseClaim,
  type Claim,
} from './store.ts'

/** Outcomes of the mails that a sweep claimed. */
export interface SweepSummary {
  sent: number
  /** Not handed over; a later sweep tries again. */
  failed: number
  /** The address does not exist: not tried again until the customer has another one. */
  refused: number
  /** May have been handed over: not sent again, listed for operators. */
  unconfirmed: number
  /** No longer due when they were about to leave. */
  dropped: number
}
type Outcome = keyof SweepSummary

const REMINDERS = job('reminders')

/** A sweep of all apps ends after this long, well before its job counts as hung; the next sweep continues. */
const LONGEST_SWEEP_MS = 10 * MINUTE_MS

/** Claims of dead sweeps that one sweep deletes. */
const MAX_DEAD_CLAIMS = 1000
/** After this many mails in a row, whoever their customers are, the mail server itself counts as unreachable. */
const MAX_UNREACHABLE_IN_A_ROW = 3
/** Longer than any stage's window: what failed earlier is no longer due. */
const FAILED_BACK_MS = 8 * DAY_MS

export interface SweepOptions {
  /** Starts no further mail; those under way are finished. */
  readonly signal?: AbortSignal
  /** Sweeps only this app. */
  readonly appId?: number
}

/** Stops a mail at the hand-over: its content is out of date. */
class NoLongerDue extends Error {
  override readonly name = 'NoLongerDue'
}

/** The state of one run of `sendDueReminders`. */
interface Run {
  readonly mailer: Mailer
  readonly signal: AbortSignal
  readonly summary: SweepSummary
  /** Mails that failed in this run, by `nameOf`: the next run tries them again. */
  readonly failed: Set<string>
  unreachableInARow: number
}

/**
 * Sends every mail whose stage applies now (specification 6; contract 4, Reminders); those that failed before come last. Each is
 * claimed under its unique key, composed, marked as handed over between the mail server's go-ahead and the first byte, and recorded
 * with its webhook event once the server has accepted it. A daemon that dies before the mark loses nothing; one that dies after it
 * leaves the mail unconfirmed, and it is not sent twice.
 * Mails beyond an app's daily limit are not claimed: a sweep of the next day sends them, if their stage still applies.
 */
export async function sendDueReminders(ctx: Context, options: SweepOptions = {}): Promise<SweepSummary> {
  const summary: SweepSummary = { sent: 0, failed: 0, refused: 0, unconfirmed: 0, dropped: 0 }
  const mailer = openMailer(ctx.config, ctx.log)
  if (!mailer) {
    ctx.log.warn('no reminders are sent: BILLING_SMTP_URL is not set')
    return summary
  }
  const signals = [options.signal, options.appId === undefined ? AbortSignal.timeout(LONGEST_SWEEP_MS) : undefined]
  const signal = AbortSignal.any(signals.filter((each) => each !== undefined))
  const run: Run = { mailer, signal, summary, failed: new Set(), unreachableInARow: 0 }
  try {
    await dropDeadClaims(ctx)
    const sweeps = await listSweeps(ctx, options.appId)
    const anyFailed = await hasFailed(ctx.db, addMs(await databaseNow(ctx, ctx.db), -FAILED_BACK_MS))
    for (const sweep of sweeps) await sendOneSweep(ctx, run, sweep, 'new')
    if (anyFailed) for (const sweep of shuffled(sweeps)) await sendOneSweep(ctx, run, sweep, 'with retries')
  } finally {
    mailer.close()
  }
  if (Object.values(summary).some((count) => count > 0)) ctx.log.info({ ...summary }, 'reminders swept')
  return summary
}

/** Sweeps skip apps at their daily limit, so that the claim of a dead sweep would use up a mail of the day. */
async function dropDeadClaims(ctx: Context): Promise<void> {
  const dead = await listDeadClaims(ctx.db, await databaseNow(ctx, ctx.db), MAX_DEAD_CLAIMS)
  for (const claim of dead) await inTransaction(ctx, (tx) => dropClaim(tx, claim))
}

async function sendOneSweep(ctx: Context, run: Run, sweep: Sweep, tries: Tries): Promise<void> {
  const appsAtLimit = await findAppsAtLimit(ctx)
  const dueMails = findDue(ctx, sweep, appsAtLimit, tries)
  const claimer = openMailClaimer(ctx, {
    dueMails,
    isExcluded: (due) => appsAtLimit.has(due.app.id) || run.failed.has(nameOf(due)),
    onLimitReached: (app) => noteLimitReached(ctx, app, appsAtLimit),
    // While the mail server is unreachable, another attempt would fail too, and would keep its claim from other daemons.
    shouldStop: () => run.unreachableInARow >= MAX_UNREACHABLE_IN_A_ROW || run.signal.aborted,
  })
  const recorder = openSentRecorder(ctx, REMINDERS, ({ due }) => count(ctx, run, due, 'sent'))
  const sendInTurn = async (): Promise<void> => {
    for (let mail = await claimer.next(); mail; mail = await claimer.next()) await sendOne(ctx, run, mail, recorder)
  }
  const turns = await Promise.allSettled(Array.from({ length: MAIL_CONNECTIONS }, sendInTurn))
  const ends = await Promise.allSettled([recorder.end(), claimer.releaseAll()])
  await dueMails.return(undefined)
  for (const part of [...turns, ...ends]) if (part.status === 'rejected') throw part.reason
}

function count(ctx: Context, run: Run, due: DueReminder, outcome: Outcome): void {
  run.summary[outcome] += 1
  ctx.count('reminders_total', { stage: String(due.stage), outcome })
}

function noteLimitReached(ctx: Context, app: App, appsAtLimit: Set<number>): void {
  if (appsAtLimit.has(app.id)) return
  appsAtLimit.add(app.id)
  const fields = { appId: app.id, limit: dailyLimit(ctx.config, app) }
  ctx.log.warn(fields, 'the app has reached its daily limit of reminder mails: reminders plan lists those that wait')
}

function nameOf({ subscription, stage }: DueReminder): string {
  return `${subscription.id} ${stage}`
}

async function sendOne(ctx: Context, run: Run, claimed: ClaimedMail, recorder: SentRecorder): Promise<void> {
  const { due, claim } = claimed
  try {
    const mail = await composeReminder(ctx.config, due)
    await run.mailer.send(mail, { beforeHandOver: () => handOver(ctx, due, claim) })
  } catch (error) {
    const outcome = await recordFailure(ctx, due, claim, error)
    count(ctx, run, due, outcome)
    if (outcome === 'failed') run.failed.add(nameOf(due))
    run.unreachableInARow =
      error instanceof MailError && error.failure === 'unreachable' ? run.unreachableInARow + 1 : 0
    return
  }
  run.unreachableInARow = 0
  await recorder.record(claimed)
}

/** The last check: a customer who has just paid or opted out gets no mail. */
async function handOver(
  ctx: Context,
  { app, subscription, periodEnd, stage }: DueReminder,
  claim: Claim,
): Promise<void> {
  const { from, until } = stageWindow(stage, periodEnd)
  const isDue = await markHandedOver(ctx.db, databasePresent(ctx), claim, {
    subscriptionRevision: subscription.revision,
    clockOffsetMs: app.clockOffsetMs,
    from: realTime(app, from),
    until: realTime(app, until),
  })
  if (!isDue) throw new NoLongerDue(`stage ${stage} is no longer due`)
}

async function recordFailure(ctx: Context, due: DueReminder, claim: Claim, error: unknown): Promise<Outcome> {
  if (error instanceof MailError && error.cause instanceof NoLongerDue) {
    await inTransaction(ctx, (tx) => dropClaim(tx, claim))
    return 'dropped'
  }
  const reason = messageOf(error).slice(0, 500)
  const failure = error instanceof MailError ? error.failure : 'refused'
  const mayHaveLeft = failure === 'unknown'
  ctx.log.warn(
    { reminderId: claim.reminderId, appId: due.app.id, stage: due.stage, reason },
    mayHaveLeft ? 'a reminder may or may not have been sent: reminders plan shows it' : 'a reminder was not sent',
  )
  return inTransaction(ctx, async (tx): Promise<Outcome> => {
    if (mayHaveLeft) {
      await noteUnconfirmed(tx, claim, reason)
      return 'unconfirmed'
    }
    if (failure === 'no_such_address') {
      await refuseClaim(tx, claim, due.customer.email, reason)
      return 'refused'
    }
    // While the mail server is unreachable, the time until the next sweep is pause enough.
    await releaseClaim(tx, claim, reason, failure === 'unreachable' ? null : await databaseNow(ctx, tx))
    return 'failed'
  })
}
