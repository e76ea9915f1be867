import { realTime } from '#apps/app-time.ts'
import type { App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { job } from '#commands/caller.ts'
import { inTransaction } from '#commands/transaction.ts'
import { databaseNow, presentIn } from '#db/database-now.ts'
import { MAIL_CONNECTIONS, MailError, openMailer, type Mailer } from '#mail/send.ts'
import { messageOf } from '#shared/errors.ts'
import { shuffled } from '#shared/shuffled.ts'
import { DAY_MS, MINUTE_MS, addMs } from '#shared/time.ts'
import { openMailClaimer, type ClaimedMail } from './claim-mails.ts'
import { composeReminder, type DueReminder } from './compose-reminder.ts'
import { dailyLimit, findSpentApps } from './daily-limit.ts'
import { findDue, listSweeps, type Sweep, type Tries } from './find-due.ts'
import { openSentRecorder, type SentRecorder } from './sent-recorder.ts'
import { stageWindow } from './stages.ts'
import {
  dropClaim,
  freeClaim,
  hasFailed,
  listDeadClaims,
  markHandedOver,
  noteUnconfirmed,
  refuseClaim,
  type Claim,
} from './store.ts'

/** What became of the mails that a sweep took up. */
export interface SweepSummary {
  sent: number
  /** Surely not handed over; the next sweep tries again. */
  failed: number
  /** There is no such address: not tried again until the customer has another one. */
  refused: number
  /** Perhaps handed over: nobody sends them again, operators see them. */
  unconfirmed: number
  /** Claimed, and not due any more when they were about to leave. */
  dropped: number
}
type Outcome = keyof SweepSummary

const REMINDERS = job('reminders')

/** A sweep of all apps ends after this long, well before its job is taken for one that never ends; the next one goes on. */
const LONGEST_SWEEP_MS = 10 * MINUTE_MS

/** Of mails that sweeps died at; more are left to the next sweep. */
const MOST_DEAD = 1000
/** So many mails in a row that the mail server does not take up, of whatever customers, are not the fault of one. */
const AWAY_IN_A_ROW = 3
/** Longer than any stage's window: what failed before is due no more. */
const FAILED_BACK_MS = 8 * DAY_MS

export interface SweepOptions {
  /** Begins no further mail; those on their way are finished. */
  readonly signal?: AbortSignal
  /** Sweeps one app alone. */
  readonly appId?: number
}

/** The mail stopped at the hand-over: what it tells was no longer so. */
class NoLongerDue extends Error {
  override readonly name = 'NoLongerDue'
}

/** What a run knows while it sends. */
interface Run {
  readonly mailer: Mailer
  readonly signal: AbortSignal
  readonly summary: SweepSummary
  /** Mails that failed in this run, by `nameOf`: the next one tries again. */
  readonly failed: Set<string>
  awayInARow: number
}

/**
 * Sends every mail whose stage holds now (specification 6; contract 4, Reminders), those that failed before after all others. Each is
 * claimed under its unique key, made, marked as handed over between the mail server's go-ahead and the first byte, and recorded with its
 * webhook event when the server took it. A daemon that dies before the mark loses nothing; one that dies after it leaves the mail
 * unconfirmed, and nobody sends it twice.
 * What goes beyond an app's mails of the day is not claimed: a sweep of the next day sends it, where its stage still holds.
 */
export async function sendDueReminders(ctx: Context, options: SweepOptions = {}): Promise<SweepSummary> {
  const summary: SweepSummary = { sent: 0, failed: 0, refused: 0, unconfirmed: 0, dropped: 0 }
  const mailer = openMailer(ctx.config, ctx.log)
  if (!mailer) {
    ctx.log.warn('no reminder is sent: BILLING_SMTP_URL is not set')
    return summary
  }
  const signals = [options.signal, options.appId === undefined ? AbortSignal.timeout(LONGEST_SWEEP_MS) : undefined]
  const signal = AbortSignal.any(signals.filter((each) => each !== undefined))
  const run: Run = { mailer, signal, summary, failed: new Set(), awayInARow: 0 }
  try {
    await dropDeadClaims(ctx)
    const sweeps = await listSweeps(ctx, options.appId)
    const anyFailed = await hasFailed(ctx.db, addMs(await databaseNow(ctx, ctx.db), -FAILED_BACK_MS))
    for (const sweep of sweeps) await sendOneSweep(ctx, run, sweep, 'first')
    if (anyFailed) for (const sweep of shuffled(sweeps)) await sendOneSweep(ctx, run, sweep, 'also again')
  } finally {
    mailer.close()
  }
  if (Object.values(summary).some((count) => count > 0)) ctx.log.info({ ...summary }, 'reminders swept')
  return summary
}

/** A mail that a sweep died at would take a place of the day's that no sweep of an app without places looks for. */
async function dropDeadClaims(ctx: Context): Promise<void> {
  const dead = await listDeadClaims(ctx.db, await databaseNow(ctx, ctx.db), MOST_DEAD)
  for (const claim of dead) await inTransaction(ctx, (tx) => dropClaim(tx, claim))
}

async function sendOneSweep(ctx: Context, run: Run, sweep: Sweep, tries: Tries): Promise<void> {
  const spentApps = await findSpentApps(ctx)
  const dueMails = findDue(ctx, sweep, spentApps, tries)
  const claimer = openMailClaimer(ctx, {
    dueMails,
    isLeftOut: (due) => spentApps.has(due.app.id) || run.failed.has(nameOf(due)),
    onSpent: (app) => noteSpent(ctx, app, spentApps),
    // With the mail server away the next mail would fare no better, and each try keeps a claim from others for a while.
    isToEnd: () => run.awayInARow >= AWAY_IN_A_ROW || run.signal.aborted,
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

function noteSpent(ctx: Context, app: App, spentApps: Set<number>): void {
  if (spentApps.has(app.id)) return
  spentApps.add(app.id)
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
    const outcome = await settleFailure(ctx, due, claim, error)
    count(ctx, run, due, outcome)
    if (outcome === 'failed') run.failed.add(nameOf(due))
    run.awayInARow = error instanceof MailError && error.fault === 'away' ? run.awayInARow + 1 : 0
    return
  }
  run.awayInARow = 0
  await recorder.record(claimed)
}

/** The last look: a customer who has just paid or opted out gets no mail. */
async function handOver(
  ctx: Context,
  { app, subscription, periodEnd, stage }: DueReminder,
  claim: Claim,
): Promise<void> {
  const { from, until } = stageWindow(stage, periodEnd)
  const isDue = await markHandedOver(ctx.db, presentIn(ctx), claim, {
    subscriptionRevision: subscription.revision,
    clockOffsetMs: app.clockOffsetMs,
    from: realTime(app, from),
    until: realTime(app, until),
  })
  if (!isDue) throw new NoLongerDue(`stage ${stage} is no longer due`)
}

async function settleFailure(ctx: Context, due: DueReminder, claim: Claim, error: unknown): Promise<Outcome> {
  if (error instanceof MailError && error.cause instanceof NoLongerDue) {
    await inTransaction(ctx, (tx) => dropClaim(tx, claim))
    return 'dropped'
  }
  const reason = messageOf(error).slice(0, 500)
  const fault = error instanceof MailError ? error.fault : 'refused'
  const mayHaveLeft = fault === 'unknown'
  ctx.log.warn(
    { reminderId: claim.reminderId, appId: due.app.id, stage: due.stage, reason },
    mayHaveLeft ? 'a reminder may or may not have been sent: reminders plan shows it' : 'a reminder was not sent',
  )
  return inTransaction(ctx, async (tx): Promise<Outcome> => {
    if (mayHaveLeft) {
      await noteUnconfirmed(tx, claim, reason)
      return 'unconfirmed'
    }
    if (fault === 'no_such_address') {
      await refuseClaim(tx, claim, due.customer.email, reason)
      return 'refused'
    }
    // With the mail server away, the sweep's own end is the pause.
    await freeClaim(tx, claim, reason, fault === 'away' ? null : await databaseNow(ctx, tx))
    return 'failed'
  })
}
