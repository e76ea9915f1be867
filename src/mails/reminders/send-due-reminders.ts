import { listClockGroups, type ClockGroup } from '#apps/clock-groups.ts'
import { job } from '#commands/caller.ts'
import { perform } from '#commands/perform.ts'
import type { Context } from '#context.ts'
import { databaseNow } from '#db/database-now.ts'
import { shuffled } from '#shared/shuffled.ts'
import { DAY_MS, addMs } from '#shared/time.ts'
import { dailyLimit, findAppsAtLimit } from '#mails/daily-limit.ts'
import { REMINDERS } from '#mails/mail-kinds.ts'
import type { ClaimedMail, MailQueue, Outcome } from '#mails/mail-queue.ts'
import { sendMails, withMailSweep, type SweepOptions } from '#mails/send-mails.ts'
import { claimReminders, nameOfDue } from './claim-reminders.ts'
import { composeReminder, type DueReminder } from './compose-reminder.ts'
import { findDue, type Tries } from './find-due.ts'
import { reminderSent } from './record-sent.ts'
import { deleteClaim, hasFailed, stillDue } from './store.ts'

const REMINDER_JOB = job('reminders')
/** Longer than any stage's window: what failed earlier is no longer due. */
const FAILED_BACK_MS = 8 * DAY_MS

/** Outcomes of the mails that a sweep claimed. */
export type SweepSummary = Record<Outcome, number>

/** The outcomes of one run of the job, which sends several queues one after another. */
export class ReminderRun {
  readonly summary: SweepSummary = { sent: 0, failed: 0, refused: 0, unconfirmed: 0, dropped: 0 }
  /** The mails that failed, by `nameOfDue`: the next run tries them again. */
  readonly failed = new Set<string>()
}

/**
 * Sends every mail whose stage applies now (R170); those that failed before come last. Mails beyond an
 * app's daily limit are not claimed: a sweep of the next day sends them, if their stage still applies.
 */
export async function sendDueReminders(ctx: Context, options: SweepOptions = {}): Promise<SweepSummary> {
  const run = new ReminderRun()
  const hasMailer = await withMailSweep(ctx, REMINDERS, options, async (sweep) => {
    const groups = await listClockGroups(ctx, options.appId)
    const anyFailed = await hasFailed(ctx.db, addMs(await databaseNow(ctx, ctx.db), -FAILED_BACK_MS))
    const sendGroup = async (group: ClockGroup, tries: Tries): Promise<void> =>
      sendMails(ctx, sweep, reminderQueue(ctx, run, group, tries, await findAppsAtLimit(ctx)))
    for (const group of groups) await sendGroup(group, 'new')
    if (anyFailed) for (const group of shuffled(groups)) await sendGroup(group, 'with retries')
  })
  if (!hasMailer) ctx.log.warn('reminders are not sent: set BILLING_SMTP_URL')
  if (Object.values(run.summary).some((count) => count > 0)) ctx.log.info({ ...run.summary }, 'reminders swept')
  return run.summary
}

/** The due reminders of one group of apps. Adds to `appsAtLimit` the apps that reach their daily limit in this queue. */
export function reminderQueue(
  ctx: Context,
  run: ReminderRun,
  group: ClockGroup,
  tries: Tries,
  appsAtLimit: Set<number>,
): MailQueue<DueReminder> {
  async function* notExcluded(): AsyncGenerator<DueReminder> {
    for await (const due of findDue(ctx, group, appsAtLimit, tries))
      if (!appsAtLimit.has(due.app.id) && !run.failed.has(nameOfDue(due))) yield due
  }
  return {
    kind: REMINDERS,
    due: notExcluded(),
    claim: (mails) => claimAndExclude(ctx, appsAtLimit, mails),
    compose: (due) => composeReminder(ctx.config, due),
    stillDue,
    recordSent: (mail) => perform(ctx, REMINDER_JOB, reminderSent, undefined, { mail }),
    // A reminder is due again by its window alone, final or not.
    stop: deleteClaim,
    recordOutcome(due, outcome) {
      run.summary[outcome] += 1
      if (outcome === 'failed') run.failed.add(nameOfDue(due))
      ctx.count('reminders_total', { stage: String(due.stage), outcome })
    },
  }
}

async function claimAndExclude(
  ctx: Context,
  appsAtLimit: Set<number>,
  mails: readonly DueReminder[],
): Promise<ClaimedMail<DueReminder>[]> {
  const { claimed, reached } = await claimReminders(ctx, mails)
  for (const app of reached) {
    appsAtLimit.add(app.id)
    ctx.log.warn(
      { appId: app.id, limit: dailyLimit(ctx.config, app) },
      'the app has reached its daily limit of reminder mails: reminders plan lists those that wait',
    )
  }
  return claimed
}
