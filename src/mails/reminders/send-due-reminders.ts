import { listClockGroups } from '#apps/clock-groups.ts'
import type { Context } from '#context.ts'
import { databaseNow } from '#db/database-now.ts'
import { shuffled } from '#shared/shuffled.ts'
import { DAY_MS, addMs } from '#shared/time.ts'
import { findAppsAtLimit } from '#mails/daily-limit.ts'
import { findDue } from './find-due.ts'
import type { Outcome } from '#mails/mail-queue.ts'
import { REMINDERS } from '#mails/mail-kinds.ts'
import { releaseUntriedReminder, reminderQueue, type ReminderRun } from './reminder-queue.ts'
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
  const summary: SweepSummary = { sent: 0, failed: 0, refused: 0, unconfirmed: 0, dropped: 0 }
  const run: ReminderRun = { summary, failed: new Set() }
  const hasMailer = await withMailSweep(ctx, options, async (mailSweep) => {
    await releaseDead(ctx, { kind: REMINDERS, releaseUntried: releaseUntriedReminder })
    const groups = await listClockGroups(ctx, options.appId)
    const anyFailed = await hasFailed(ctx.db, addMs(await databaseNow(ctx, ctx.db), -FAILED_BACK_MS))
    const first = groups.map((group) => ({ group, tries: 'new' as const }))
    const again = anyFailed ? shuffled(groups).map((group) => ({ group, tries: 'with retries' as const })) : []
    for (const { group, tries } of [...first, ...again]) {
      const appsAtLimit = await findAppsAtLimit(ctx)
      await sendMails(ctx, mailSweep, reminderQueue(ctx, run, findDue(ctx, group, appsAtLimit, tries), appsAtLimit))
    }
  })
  if (!hasMailer) ctx.log.warn('reminders are not sent: set BILLING_SMTP_URL')
  if (Object.values(summary).some((count) => count > 0)) ctx.log.info({ ...summary }, 'reminders swept')
  return summary
}
