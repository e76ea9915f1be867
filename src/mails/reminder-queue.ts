import { realTime } from '#apps/app-time.ts'
import type { Context } from '#context.ts'
import { job } from '#commands/caller.ts'
import { perform } from '#commands/perform.ts'
import { inTransaction, type Tx } from '#commands/transaction.ts'
import { isDuplicate } from '#db/database-error.ts'
import { databaseNow, databasePresent } from '#db/database-now.ts'
import { formatDay } from '#shared/time.ts'
import { recordFailure, release } from './claims.ts'
import { composeReminder, type DueReminder } from './compose-reminder.ts'
import { dailyLimit } from './daily-limit.ts'
import { countMails } from './limits/store.ts'
import { REMINDERS } from './mail-kinds.ts'
import { Stopped, type MailQueue, type Outcome } from './mail-queue.ts'
import { remindersSent } from './record-sent.ts'
import { stageWindow } from './stages.ts'
import {
  claimNew,
  countMail,
  dropClaim,
  markHandedOver,
  reclaim,
  REMINDER_KEY,
  type Claim,
  type ReminderKey,
} from './store.ts'

const REMINDER_JOB = job('reminders')

/** A mail that only this sweep may send. */
export interface ClaimedReminder {
  readonly due: DueReminder
  readonly claim: Claim
  /** Whether an earlier sweep tried it. */
  readonly wasTried: boolean
}

/** Rolls back the claims: an app has reached its daily limit. */
class DailyLimitReached extends Error {
  override readonly name = 'DailyLimitReached'
}

/** What one run of the job adds up, over its sweeps. */
export interface ReminderRun {
  readonly summary: Record<Outcome, number>
  /** Mails that failed in this run, by `nameOf`: the next run tries them again. */
  readonly failed: Set<string>
}

/** Reminders have a row from their first claim on. `appsAtLimit` grows by the apps that reach their daily limit. */
export function reminderQueue(
  ctx: Context,
  run: ReminderRun,
  dueMails: AsyncGenerator<DueReminder>,
  appsAtLimit: Set<number>,
): MailQueue<DueReminder, ClaimedReminder> {
  const isExcluded = (due: DueReminder): boolean => appsAtLimit.has(due.app.id) || run.failed.has(nameOf(due))

  async function* due(): AsyncGenerator<DueReminder> {
    for await (const mail of dueMails) if (!isExcluded(mail)) yield mail
  }

  const claimOneByOne = async (mails: readonly DueReminder[]): Promise<ClaimedReminder[]> => {
    const claimed: ClaimedReminder[] = []
    for (const mail of mails) {
      if (isExcluded(mail)) continue
      try {
        claimed.push(...(await claimOne(ctx, mail)))
      } catch (error) {
        if (!(error instanceof DailyLimitReached)) throw error
        noteLimitReached(ctx, mail, appsAtLimit)
      }
    }
    return claimed
  }

  return {
    due: due(),
    async claim(mails) {
      try {
        return await inTransaction(ctx, (tx) => claimUntried(tx, mails))
      } catch (error) {
        if (!(error instanceof DailyLimitReached) && !isDuplicate(error, REMINDER_KEY)) throw error
        return claimOneByOne(mails)
      }
    },
    async release(tx, { claim, wasTried }) {
      if (!wasTried) return dropClaim(tx, claim)
      const lastError = 'the sweep ended before it tried this mail again'
      await release(tx, REMINDERS, claim, { ...REMINDERS.waiting(await databaseNow(ctx, tx)), lastError })
    },
    compose: (mail) => composeReminder(ctx.config, mail.due),
    handOver: (mail) => handOver(ctx, mail),
    recordSent: (mails) => perform(ctx, REMINDER_JOB, remindersSent, undefined, { mails }),
    stop: ({ claim }) => inTransaction(ctx, (tx) => dropClaim(tx, claim)),
    async fail({ due: { app, stage, customer }, claim }, failure, reason) {
      ctx.log.warn(
        { reminderId: claim.id, appId: app.id, stage, reason },
        failure === 'unknown'
          ? 'a reminder may or may not have been sent: reminders plan shows it'
          : 'a reminder was not sent',
      )
      const failed = { failure, reason, to: customer.email }
      await inTransaction(ctx, (tx) => recordFailure(tx, REMINDERS, claim, failed))
    },
    count(mail, outcome) {
      run.summary[outcome] += 1
      if (outcome === 'failed') run.failed.add(nameOf(mail.due))
      ctx.count('reminders_total', { stage: String(mail.due.stage), outcome })
    },
  }
}

function nameOf({ subscription, stage }: DueReminder): string {
  return `${subscription.id} ${stage}`
}

function noteLimitReached(ctx: Context, { app }: DueReminder, appsAtLimit: Set<number>): void {
  appsAtLimit.add(app.id)
  const fields = { appId: app.id, limit: dailyLimit(ctx.config, app) }
  ctx.log.warn(fields, 'the app has reached its daily limit of reminder mails: reminders plan lists those that wait')
}

/** Claims mails that no sweep has tried, all or none: throws a duplicate if one has tried one of them, and `DailyLimitReached`. */
async function claimUntried(tx: Tx, mails: readonly DueReminder[]): Promise<ClaimedReminder[]> {
  const now = await databaseNow(tx.ctx, tx)
  const day = formatDay(now)
  const isLimited = ({ app }: DueReminder): boolean => dailyLimit(tx.ctx.config, app) !== null
  const news = mails.map((due) => ({ ...keyOf(due), countedOn: isLimited(due) ? day : null }))
  const claims = await claimNew(tx, news, now)
  await countByApp(tx, mails, day)
  return mails.flatMap((due, index) => {
    const claim = claims[index]
    return claim ? [{ due, claim, wasTried: false }] : []
  })
}

/** None if another sweep has the mail, or it has to wait. Throws `DailyLimitReached`. */
async function claimOne(ctx: Context, due: DueReminder): Promise<ClaimedReminder[]> {
  const limit = dailyLimit(ctx.config, due.app)
  const again = await inTransaction(ctx, async (tx) => {
    const now = await databaseNow(ctx, tx)
    const claim = await reclaim(tx, keyOf(due), due.customer.email, now)
    const counted = claim && limit !== null ? await countMail(tx, claim, formatDay(now), limit) : claim
    if (claim && !counted) throw new DailyLimitReached()
    return counted ? [{ due, claim: counted, wasTried: true }] : []
  })
  if (again.length > 0) return again
  try {
    return await inTransaction(ctx, (tx) => claimUntried(tx, [due]))
  } catch (error) {
    if (isDuplicate(error, REMINDER_KEY)) return []
    throw error
  }
}

function keyOf({ app, subscription, periodEnd, stage }: DueReminder): ReminderKey {
  return { appId: app.id, subscriptionId: subscription.id, periodEnd, stage }
}

/** Counts the mails among those of the day; throws `DailyLimitReached`, which rolls the claims back. */
async function countByApp(tx: Tx, mails: readonly DueReminder[], day: string): Promise<void> {
  const byApp = Map.groupBy(mails, ({ app }) => app.id)
  // Ordered, so that two daemons cannot deadlock.
  for (const [appId, ofApp] of [...byApp].sort(([a], [b]) => a - b)) {
    const limit = ofApp[0] ? dailyLimit(tx.ctx.config, ofApp[0].app) : null
    if (limit !== null && !(await countMails(tx, appId, day, ofApp.length, limit))) throw new DailyLimitReached()
  }
}

/** The last check: a customer who has just paid or opted out gets no mail. */
async function handOver(ctx: Context, { due, claim }: ClaimedReminder): Promise<void> {
  const { app, subscription, periodEnd, stage } = due
  const { from, until } = stageWindow(stage, periodEnd)
  const isDue = await markHandedOver(ctx.db, databasePresent(ctx), claim, {
    subscriptionRevision: subscription.revision,
    clockOffsetMs: app.clockOffsetMs,
    from: realTime(app, from),
    until: realTime(app, until),
  })
  if (!isDue) throw new Stopped('permanently')
}
