import { realTime } from '#apps/app-time.ts'
import type { Context } from '#context.ts'
import { job } from '#commands/caller.ts'
import { perform } from '#commands/perform.ts'
import type { Tx } from '#commands/transaction.ts'
import { databaseNow } from '#db/database-now.ts'
import { claimReminders, nameOf } from './claim-reminders.ts'
import { releaseBeforeHandOver, type Claim } from '#mails/claims/store.ts'
import { composeReminder, type DueReminder } from './compose-reminder.ts'
import { dailyLimit } from '#mails/daily-limit.ts'
import { REMINDERS } from '#mails/mail-kinds.ts'
import type { MailQueue, Outcome } from '#mails/mail-queue.ts'
import { reminderSent } from './record-sent.ts'
import { stageWindow } from './stages.ts'
import { deleteClaim, reminders, stillDue } from './store.ts'

const REMINDER_JOB = job('reminders')

/** What one run of the job adds up, over its sweeps. */
export interface ReminderRun {
  readonly summary: Record<Outcome, number>
  /** Mails that failed in this run, by `reminderName`: the next run tries them again. */
  readonly failed: Set<string>
}

/** Reminders have a row from their first claim on. `appsAtLimit` grows by the apps that reach their daily limit. */
export function reminderQueue(
  ctx: Context,
  run: ReminderRun,
  dueMails: AsyncGenerator<DueReminder>,
  appsAtLimit: Set<number>,
): MailQueue<DueReminder> {
  const isExcluded = (due: DueReminder): boolean => appsAtLimit.has(due.app.id) || run.failed.has(nameOf(due))

  async function* due(): AsyncGenerator<DueReminder> {
    for await (const mail of dueMails) if (!isExcluded(mail)) yield mail
  }

  return {
    kind: REMINDERS,
    due: due(),
    async claim(mails) {
      const { claimed, reached } = await claimReminders(ctx, mails)
      for (const app of reached) {
        appsAtLimit.add(app.id)
        const fields = { appId: app.id, limit: dailyLimit(ctx.config, app) }
        ctx.log.warn(
          fields,
          'the app has reached its daily limit of reminder mails: reminders plan lists those that wait',
        )
      }
      return claimed
    },
    releaseUntried: releaseUntriedReminder,
    compose: (mail) => composeReminder(ctx.config, mail),
    stillDue({ app, subscription, periodEnd, stage }, now) {
      const { from, until } = stageWindow(stage, periodEnd)
      return stillDue(now, {
        subscriptionRevision: subscription.revision,
        clockOffsetMs: app.clockOffsetMs,
        from: realTime(app, from),
        until: realTime(app, until),
      })
    },
    recordSent: (mail) => perform(ctx, REMINDER_JOB, reminderSent, undefined, { mail }),
    // A reminder is due again by its window alone, final or not.
    stop: deleteClaim,
    recordOutcome(mail, outcome) {
      run.summary[outcome] += 1
      if (outcome === 'failed') run.failed.add(nameOf(mail))
      ctx.count('reminders_total', { stage: String(mail.stage), outcome })
    },
  }
}

/** Releases a claim whose mail was not tried. A mail that the server never refused loses its row, as if no sweep had claimed it. */
export async function releaseUntriedReminder(tx: Tx, claim: Claim): Promise<void> {
  if (claim.failures === 0) await deleteClaim(tx, claim)
  else await releaseBeforeHandOver(tx, reminders, claim, { status: 'failed', retryAt: await databaseNow(tx.ctx, tx) })
}
