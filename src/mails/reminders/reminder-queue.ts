import { realTime } from '#apps/app-time.ts'
import type { ClockGroup } from '#apps/clock-groups.ts'
import type { App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { job } from '#commands/caller.ts'
import { perform } from '#commands/perform.ts'
import type { Tx } from '#commands/transaction.ts'
import type { Condition } from '#db/conditions.ts'
import { databaseNow, type Present } from '#db/database-now.ts'
import type { Mail } from '#mail/mail.ts'
import { claimReminders, nameOf } from './claim-reminders.ts'
import { releaseBeforeHandOver, type Claim } from '#mails/claims/store.ts'
import { composeReminder, type DueReminder } from './compose-reminder.ts'
import { findDue, type Tries } from './find-due.ts'
import { dailyLimit } from '#mails/daily-limit.ts'
import { REMINDERS } from '#mails/mail-kinds.ts'
import type { ClaimedMail, MailQueue, Outcome } from '#mails/mail-queue.ts'
import { reminderSent } from './record-sent.ts'
import { stageWindow } from './stages.ts'
import { deleteClaim, reminders, stillDue } from './store.ts'

const REMINDER_JOB = job('reminders')

/** The outcomes of one run of the job, which sends several queues one after another. */
export class ReminderRun {
  readonly summary: Record<Outcome, number> = { sent: 0, failed: 0, refused: 0, unconfirmed: 0, dropped: 0 }
  /** By `nameOf`. */
  readonly #failed = new Set<string>()

  record(mail: DueReminder, outcome: Outcome): void {
    this.summary[outcome] += 1
    if (outcome === 'failed') this.#failed.add(nameOf(mail))
  }

  /** Whether the mail failed in this run: the next run tries it again. */
  hasFailed(mail: DueReminder): boolean {
    return this.#failed.has(nameOf(mail))
  }
}

/** The due reminders of one group of apps. A reminder has a row from its first claim on. */
export class ReminderQueue implements MailQueue<DueReminder> {
  readonly kind = REMINDERS
  readonly due: AsyncGenerator<DueReminder>
  readonly releaseUntried = releaseUntriedReminder
  /** A reminder is due again by its window alone, final or not. */
  readonly stop = deleteClaim
  readonly #ctx: Context
  readonly #run: ReminderRun
  /** Grows by the apps that reach their daily limit in this queue. */
  readonly #appsAtLimit: Set<number>

  constructor(ctx: Context, run: ReminderRun, group: ClockGroup, tries: Tries, appsAtLimit: ReadonlySet<number>) {
    this.#ctx = ctx
    this.#run = run
    this.#appsAtLimit = new Set(appsAtLimit)
    this.due = this.#findDue(group, tries)
  }

  async *#findDue(group: ClockGroup, tries: Tries): AsyncGenerator<DueReminder> {
    for await (const mail of findDue(this.#ctx, group, this.#appsAtLimit, tries)) {
      const isExcluded = this.#appsAtLimit.has(mail.app.id) || this.#run.hasFailed(mail)
      if (!isExcluded) yield mail
    }
  }

  async claim(mails: readonly DueReminder[]): Promise<ClaimedMail<DueReminder>[]> {
    const { claimed, reached } = await claimReminders(this.#ctx, mails)
    for (const app of reached) this.#excludeAtLimit(app)
    return claimed
  }

  #excludeAtLimit(app: App): void {
    this.#appsAtLimit.add(app.id)
    this.#ctx.log.warn(
      { appId: app.id, limit: dailyLimit(this.#ctx.config, app) },
      'the app has reached its daily limit of reminder mails: reminders plan lists those that wait',
    )
  }

  compose(mail: DueReminder): Promise<Mail> {
    return composeReminder(this.#ctx.config, mail)
  }

  stillDue({ app, subscription, periodEnd, stage }: DueReminder, now: Present): Condition {
    const { from, until } = stageWindow(stage, periodEnd)
    return stillDue(now, {
      subscriptionRevision: subscription.revision,
      clockOffsetMs: app.clockOffsetMs,
      from: realTime(app, from),
      until: realTime(app, until),
    })
  }

  recordSent(mail: ClaimedMail<DueReminder>): Promise<void> {
    return perform(this.#ctx, REMINDER_JOB, reminderSent, undefined, { mail })
  }

  recordOutcome(mail: DueReminder, outcome: Outcome): void {
    this.#run.record(mail, outcome)
    this.#ctx.count('reminders_total', { stage: String(mail.stage), outcome })
  }
}

/** Releases a claim whose mail was not tried. A mail that the server never refused loses its row, as if no sweep had claimed it. */
export async function releaseUntriedReminder(tx: Tx, claim: Claim): Promise<void> {
  if (claim.failures === 0) await deleteClaim(tx, claim)
  else await releaseBeforeHandOver(tx, reminders, claim, { status: 'failed', retryAt: await databaseNow(tx.ctx, tx) })
}
