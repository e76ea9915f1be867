import { listClockGroups, type ClockGroup } from '#apps/clock-groups.ts'
import type { Context } from '#context.ts'
import { databaseNow } from '#db/database-now.ts'
import { shuffled } from '#shared/shuffled.ts'
import { DAY_MS, addMs } from '#shared/time.ts'
import { findAppsAtLimit } from '#mails/daily-limit.ts'
import type { Tries } from './find-due.ts'
import type { Outcome } from '#mails/mail-queue.ts'
import { REMINDERS } from '#mails/mail-kinds.ts'
import { ReminderQueue, ReminderRun, releaseUntriedReminder } from './reminder-queue.ts'
import { releaseDead, sendMails, withMailSweep, type SweepOptions } from '#mails/send-mails.ts'
import { hasFailed } from './store.ts'

/** Outcomes of the mails that a sweep claimed. */
export type SweepSummary = Record<Outcome, number>

/** Longer than any stage's window: what failed earlier is no longer due. */
const FAILED_BACK_MS = 8 * DAY_MS

/**
 * Sends every mail whose stage applies now (R170); those that failed before come last. Mails beyond an
 * app's daily limit are not claimed: a sweep of the next day sends them, if their stage still applies.
 */
export async function sendDueReminders(ctx: Context, options: SweepOptions = {}): Promise<SweepSummary> {
  const run = new ReminderRun()
  const hasMailer = await withMailSweep(ctx, options, async (mailSweep) => {
    await releaseDead(ctx, { kind: REMINDERS, releaseUntried: releaseUntriedReminder })
    const groups = await listClockGroups(ctx, options.appId)
    const anyFailed = await hasFailed(ctx.db, addMs(await databaseNow(ctx, ctx.db), -FAILED_BACK_MS))
    const sendGroup = async (group: ClockGroup, tries: Tries): Promise<void> =>
      sendMails(ctx, mailSweep, new ReminderQueue(ctx, run, group, tries, await findAppsAtLimit(ctx)))
    for (const group of groups) await sendGroup(group, 'new')
    if (anyFailed) for (const group of shuffled(groups)) await sendGroup(group, 'with retries')
  })
  if (!hasMailer) ctx.log.warn('reminders are not sent: set BILLING_SMTP_URL')
  if (Object.values(run.summary).some((count) => count > 0)) ctx.log.info({ ...run.summary }, 'reminders swept')
  return run.summary
}
