import type { App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { inTransaction, type Tx } from '#commands/transaction.ts'
import { isDuplicate } from '#db/database-error.ts'
import { databaseNow } from '#db/database-now.ts'
import { formatDay } from '#shared/time.ts'
import { claimAsRead } from '#mails/claims/store.ts'
import type { DueReminder } from './compose-reminder.ts'
import { dailyLimit } from '#mails/daily-limit.ts'
import { reserveMails } from '#mails/limits/store.ts'
import type { ClaimedMail } from '#mails/mail-queue.ts'
import {
  claimNew,
  isClaimable,
  lockTried,
  REMINDER_KEY,
  reminderName,
  reminders,
  type Reminder,
  type ReminderKey,
} from './store.ts'

/** Claimed mails, and the apps whose daily limit did not allow all of theirs. */
export interface Claimed {
  readonly claimed: ClaimedMail<DueReminder>[]
  readonly reached: readonly App[]
}

/** Claims the mails that no other sweep has and that the daily limits allow. */
export async function claimReminders(ctx: Context, mails: readonly DueReminder[]): Promise<Claimed> {
  for (;;) {
    try {
      return await inTransaction(ctx, (tx) => claimFree(tx, mails))
    } catch (error) {
      // Another sweep has claimed one of them for the first time: the next attempt finds its row.
      if (!isDuplicate(error, REMINDER_KEY)) throw error
    }
  }
}

async function claimFree(tx: Tx, mails: readonly DueReminder[]): Promise<Claimed> {
  const now = await databaseNow(tx.ctx, tx)
  const tried = new Map((await lockTried(tx, mails.map(keyOf))).map((row) => [reminderName(row), row]))
  const rowOf = (due: DueReminder): Reminder | undefined => tried.get(nameOfDue(due))
  const free = mails.filter((due) => {
    const row = rowOf(due)
    return !row || isClaimable(row, due.customer.email, now)
  })
  const { counted, reached } = await countWithinLimits(tx, free, formatDay(now))
  const untried = counted.filter(({ due }) => !rowOf(due)).map(({ due, countedOn }) => ({ ...keyOf(due), countedOn }))
  const claims = await claimNew(tx, untried, now)
  const claimed: ClaimedMail<DueReminder>[] = []
  for (const { due, countedOn } of counted) {
    const row = rowOf(due)
    const claim = row ? await claimAsRead(tx, reminders, row, now, countedOn) : claims.get(nameOfDue(due))
    if (!claim) throw new Error('a reminder that no other sweep has cannot be claimed')
    claimed.push({ due, claim })
  }
  return { claimed, reached }
}

interface Counted {
  readonly due: DueReminder
  /** Null if the app has no limit. */
  readonly countedOn: string | null
}

/** Counts the mails towards the limits of `day`, as far as those allow. */
async function countWithinLimits(
  tx: Tx,
  mails: readonly DueReminder[],
  day: string,
): Promise<{ counted: Counted[]; reached: App[] }> {
  const counted: Counted[] = []
  const reached: App[] = []
  const byApp = Map.groupBy(mails, ({ app }) => app.id)
  // Ordered, so that two daemons cannot deadlock.
  for (const [appId, ofApp] of [...byApp].sort(([a], [b]) => a - b)) {
    const app = ofApp[0]?.app
    const limit = app ? dailyLimit(tx.ctx.config, app) : null
    const allowed = limit === null ? ofApp.length : await reserveMails(tx, appId, day, ofApp.length, limit)
    const countedOn = limit === null ? null : day
    counted.push(...ofApp.slice(0, allowed).map((due) => ({ due, countedOn })))
    if (app && allowed < ofApp.length) reached.push(app)
  }
  return { counted, reached }
}

/** For the keys of maps. */
export function nameOfDue(due: DueReminder): string {
  return reminderName(keyOf(due))
}

function keyOf({ app, subscription, periodEnd, stage }: DueReminder): ReminderKey {
  return { appId: app.id, subscriptionId: subscription.id, periodEnd, stage }
}
