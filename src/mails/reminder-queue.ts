import { realTime } from '#apps/app-time.ts'
import type { Context } from '#context.ts'
import { job } from '#commands/caller.ts'
import { perform } from '#commands/perform.ts'
import { inTransaction, type Tx } from '#commands/transaction.ts'
import { isDuplicate } from '#db/database-error.ts'
import { databaseNow } from '#db/database-now.ts'
import { formatDay } from '#shared/time.ts'
import { claimAsRead, countClaim, releaseBeforeHandOver, type Claim } from './claims/store.ts'
import { composeReminder, type DueReminder } from './compose-reminder.ts'
import { dailyLimit } from './daily-limit.ts'
import { countMails } from './limits/store.ts'
import { REMINDERS } from './mail-kinds.ts'
import type { ClaimedMail, MailQueue, Outcome } from './mail-queue.ts'
import { reminderSent } from './record-sent.ts'
import { stageWindow } from './stages.ts'
import {
  claimNew,
  deleteClaim,
  findClaimable,
  REMINDER_KEY,
  reminderName,
  reminders,
  stillDue,
  type ReminderKey,
} from './store.ts'

const REMINDER_JOB = job('reminders')

type ClaimedReminder = ClaimedMail<DueReminder>

/** Rolls back the claims: an app has reached its daily limit. */
class DailyLimitReached extends Error {
  override readonly name = 'DailyLimitReached'
}

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
  const isExcluded = (due: DueReminder): boolean =>
    appsAtLimit.has(due.app.id) || run.failed.has(reminderName(keyOf(due)))

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
    kind: REMINDERS,
    due: due(),
    async claim(mails) {
      try {
        return await inTransaction(ctx, (tx) => claimUntried(tx, mails))
      } catch (error) {
        if (!(error instanceof DailyLimitReached) && !isDuplicate(error, REMINDER_KEY)) throw error
        return claimOneByOne(mails)
      }
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
    stop: deleteClaim,
    count(mail, outcome) {
      run.summary[outcome] += 1
      if (outcome === 'failed') run.failed.add(reminderName(keyOf(mail)))
      ctx.count('reminders_total', { stage: String(mail.stage), outcome })
    },
  }
}

/** Releases a claim whose mail was not tried. A mail that the server never refused loses its row, as if no sweep had claimed it. */
export async function releaseUntriedReminder(tx: Tx, claim: Claim): Promise<void> {
  if (claim.failures === 0) await deleteClaim(tx, claim)
  else await releaseBeforeHandOver(tx, reminders, claim, { status: 'failed', retryAt: await databaseNow(tx.ctx, tx) })
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
    return claim ? [{ due, claim }] : []
  })
}

/** None if another sweep has the mail, or it has to wait. Throws `DailyLimitReached`. */
async function claimOne(ctx: Context, due: DueReminder): Promise<ClaimedReminder[]> {
  const again = await inTransaction(ctx, (tx) => claimAgain(tx, due))
  if (again) return [{ due, claim: again }]
  try {
    return await inTransaction(ctx, (tx) => claimUntried(tx, [due]))
  } catch (error) {
    if (isDuplicate(error, REMINDER_KEY)) return []
    throw error
  }
}

async function claimAgain(tx: Tx, due: DueReminder): Promise<Claim | null> {
  const now = await databaseNow(tx.ctx, tx)
  const reminder = await findClaimable(tx, keyOf(due), due.customer.email, now)
  const claim = reminder && (await claimAsRead(tx, reminders, reminder, now))
  const limit = dailyLimit(tx.ctx.config, due.app)
  if (!claim || limit === null) return claim
  const counted = await countClaim(tx, reminders, claim, formatDay(now), limit)
  if (!counted) throw new DailyLimitReached()
  return counted
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
