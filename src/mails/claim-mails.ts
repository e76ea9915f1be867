import type { App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { inTransaction, type Tx } from '#commands/transaction.ts'
import { isDuplicate } from '#db/database-error.ts'
import { databaseNow } from '#db/database-now.ts'
import { formatDay, type RealTime } from '#shared/time.ts'
import type { DueReminder } from './compose-reminder.ts'
import { DailyLimitReached, dailyLimit } from './daily-limit.ts'
import {
  claimNew,
  reclaim,
  countMail,
  countMails,
  dropClaim,
  releaseClaim,
  REMINDER_KEY,
  type Claim,
  type NewClaim,
  type ReminderKey,
} from './store.ts'

/** Mails claimed in one transaction: few enough to leave well before their claims expire. */
const BATCH_SIZE = 20
/** When only this many are left, the next batch is claimed in the background. */
const REFILL_AT = 10

/** A mail that only this sweep may send. */
export interface ClaimedMail {
  readonly due: DueReminder
  readonly claim: Claim
  /** Whether an earlier sweep tried it. */
  readonly wasTried: boolean
}

/** Claims due mails shortly before they are sent. */
export interface MailClaimer {
  /** The next claimed mail; null when none is left, or the sweep should stop. */
  next(): Promise<ClaimedMail | null>
  /** Releases what was claimed and not taken. */
  releaseAll(): Promise<void>
}

export interface MailsToClaim {
  readonly dueMails: AsyncGenerator<DueReminder>
  /** Mails that this sweep skips. */
  readonly isExcluded: (due: DueReminder) => boolean
  /** Called when the app has reached its daily limit: its other mails are held back. */
  readonly onLimitReached: (app: App) => void
  /** Whether to take no further mail. */
  readonly shouldStop: () => boolean
}

export function openMailClaimer(
  ctx: Context,
  { dueMails, isExcluded, onLimitReached, shouldStop }: MailsToClaim,
): MailClaimer {
  const ready: ClaimedMail[] = []
  let claiming: Promise<void> | null = null
  let isOver = false

  const takeDue = async (): Promise<DueReminder[]> => {
    const taken: DueReminder[] = []
    while (taken.length < BATCH_SIZE) {
      const next = await dueMails.next()
      if (next.done) {
        isOver = true
        break
      }
      if (!isExcluded(next.value)) taken.push(next.value)
    }
    return taken
  }

  const claimOneByOne = async (mails: readonly DueReminder[]): Promise<void> => {
    for (const due of mails) {
      if (isExcluded(due)) continue
      const claimed = await claimOne(ctx, due)
      if (claimed === 'limit_reached') onLimitReached(due.app)
      else if (claimed) ready.push(claimed)
    }
  }

  const claimMore = async (): Promise<void> => {
    const mails = await takeDue()
    if (mails.length === 0) return
    const claimed = await claimTogether(ctx, mails)
    if (typeof claimed === 'object') ready.push(...claimed)
    else await claimOneByOne(mails)
  }

  /** A failure is thrown by the `next` that waits for it. */
  const startClaiming = (): Promise<void> => {
    claiming ??= claimMore().then(() => {
      claiming = null
    })
    claiming.catch(() => undefined)
    return claiming
  }

  return {
    async next() {
      while (ready.length === 0 && !(isOver && !claiming) && !shouldStop()) await startClaiming()
      if (shouldStop()) return null
      const mail = ready.shift() ?? null
      if (ready.length <= REFILL_AT && !isOver) void startClaiming()
      return mail
    },
    async releaseAll() {
      await claiming?.catch(() => undefined)
      const left = ready.splice(0)
      if (left.length > 0) await inTransaction(ctx, (tx) => release(tx, left))
    },
  }
}

async function release(tx: Tx, mails: readonly ClaimedMail[]): Promise<void> {
  for (const { claim, wasTried } of mails) {
    if (wasTried) await releaseClaim(tx, claim, 'the sweep ended before it tried this mail again')
    else await dropClaim(tx, claim)
  }
}

/** Claims mails that no sweep has tried, all or none: `tried_before` or `limit_reached` says what kept one of them from being claimed. */
async function claimTogether(
  ctx: Context,
  mails: readonly DueReminder[],
): Promise<ClaimedMail[] | 'tried_before' | 'limit_reached'> {
  try {
    return await inTransaction(ctx, async (tx) => {
      const now = await databaseNow(ctx, tx)
      const news = mails.map((due) => newClaimOf(ctx, due, now))
      const claims = await claimNew(tx, news, now)
      await countByApp(tx, mails, formatDay(now))
      return mails.flatMap((due, index) => {
        const claim = claims[index]
        return claim ? [{ due, claim, wasTried: false }] : []
      })
    })
  } catch (error) {
    if (error instanceof DailyLimitReached) return 'limit_reached'
    if (isDuplicate(error, REMINDER_KEY)) return 'tried_before'
    throw error
  }
}

/** Null if another sweep has the mail, or it has to wait. */
async function claimOne(ctx: Context, due: DueReminder): Promise<ClaimedMail | 'limit_reached' | null> {
  const claimed = await claimTogether(ctx, [due])
  if (claimed === 'tried_before') return reclaimOne(ctx, due)
  return claimed === 'limit_reached' ? claimed : (claimed[0] ?? null)
}

async function reclaimOne(ctx: Context, due: DueReminder): Promise<ClaimedMail | 'limit_reached' | null> {
  const limit = dailyLimit(ctx.config, due.app)
  try {
    return await inTransaction(ctx, async (tx) => {
      const now = await databaseNow(ctx, tx)
      const claim = await reclaim(tx, keyOf(due), due.customer.email, now)
      if (!claim) return null
      const counted = limit === null ? claim : await countMail(tx, claim, formatDay(now), limit)
      if (!counted) throw new DailyLimitReached()
      return { due, claim: counted, wasTried: true }
    })
  } catch (error) {
    if (error instanceof DailyLimitReached) return 'limit_reached'
    throw error
  }
}

function keyOf({ app, subscription, periodEnd, stage }: DueReminder): ReminderKey {
  return { appId: app.id, subscriptionId: subscription.id, periodEnd, stage }
}

function newClaimOf(ctx: Context, due: DueReminder, now: RealTime): NewClaim {
  return { ...keyOf(due), countedOn: dailyLimit(ctx.config, due.app) === null ? null : formatDay(now) }
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
