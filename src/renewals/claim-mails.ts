import type { App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { inTransaction, type Tx } from '#commands/transaction.ts'
import { isDuplicate } from '#db/database-error.ts'
import { databaseNow } from '#db/database-now.ts'
import { formatDay, type RealTime } from '#shared/time.ts'
import type { DueReminder } from './compose-reminder.ts'
import { dailyLimit } from './daily-limit.ts'
import {
  claimNew,
  claimTried,
  countMail,
  countMails,
  dropClaim,
  freeClaim,
  REMINDER_KEY,
  type Claim,
  type NewClaim,
  type ReminderKey,
} from './store.ts'

/** Mails that are claimed in one transaction: few enough to leave well before their claims count as a dead sweep's. */
const BATCH_SIZE = 20
/** With so many left, more are claimed while these are sent. */
const REFILL_AT = 10

/** A mail that this sweep alone may send. */
export interface ClaimedMail {
  readonly due: DueReminder
  readonly claim: Claim
  /** A sweep has tried it before. */
  readonly wasTried: boolean
}

/** Claims due mails a little ahead of what is sent. */
export interface MailClaimer {
  /** The next claimed mail; null where none is left, or none is to be taken any more. */
  next(): Promise<ClaimedMail | null>
  /** Gives back what was claimed and not taken. */
  releaseAll(): Promise<void>
}

export interface MailsToClaim {
  readonly dueMails: AsyncGenerator<DueReminder>
  /** Mails that this sweep is not to try. */
  readonly isLeftOut: (due: DueReminder) => boolean
  /** The app has sent as many mails today as it may: what it has left is held back. */
  readonly onSpent: (app: App) => void
  /** Whether no further mail is to be taken. */
  readonly isToEnd: () => boolean
}

export function openMailClaimer(ctx: Context, { dueMails, isLeftOut, onSpent, isToEnd }: MailsToClaim): MailClaimer {
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
      if (!isLeftOut(next.value)) taken.push(next.value)
    }
    return taken
  }

  const claimOneByOne = async (mails: readonly DueReminder[]): Promise<void> => {
    for (const due of mails) {
      if (isLeftOut(due)) continue
      const claimed = await claimOne(ctx, due)
      if (claimed === 'spent') onSpent(due.app)
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

  /** Whoever takes the next mail throws what went wrong. */
  const startClaiming = (): Promise<void> => {
    claiming ??= claimMore().then(() => {
      claiming = null
    })
    claiming.catch(() => undefined)
    return claiming
  }

  return {
    async next() {
      while (ready.length === 0 && !(isOver && !claiming) && !isToEnd()) await startClaiming()
      if (isToEnd()) return null
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
    if (wasTried) await freeClaim(tx, claim, 'not tried again: the sweep ended before')
    else await dropClaim(tx, claim)
  }
}

/** The app has sent as many mails today as it may. */
class DayIsSpent extends Error {
  override readonly name = 'DayIsSpent'
}

/** Claims mails that nobody has tried yet. `tried`: somebody has tried one of them; `spent`: one goes beyond an app's mails of the day. */
async function claimTogether(ctx: Context, mails: readonly DueReminder[]): Promise<ClaimedMail[] | 'tried' | 'spent'> {
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
    if (error instanceof DayIsSpent) return 'spent'
    if (isDuplicate(error, REMINDER_KEY)) return 'tried'
    throw error
  }
}

/** Null where somebody else has the mail, `spent` where its app has sent as many today as it may. */
async function claimOne(ctx: Context, due: DueReminder): Promise<ClaimedMail | 'spent' | null> {
  const claimed = await claimTogether(ctx, [due])
  if (claimed === 'tried') return claimAgain(ctx, due)
  return claimed === 'spent' ? claimed : (claimed[0] ?? null)
}

async function claimAgain(ctx: Context, due: DueReminder): Promise<ClaimedMail | 'spent' | null> {
  const limit = dailyLimit(ctx.config, due.app)
  try {
    return await inTransaction(ctx, async (tx) => {
      const now = await databaseNow(ctx, tx)
      const claim = await claimTried(tx, keyOf(due), due.customer.email, now)
      if (!claim) return null
      const counted = limit === null ? claim : await countMail(tx, claim, formatDay(now), limit)
      // The claim goes with the transaction: the mail stays due as it was.
      if (!counted) throw new DayIsSpent()
      return { due, claim: counted, wasTried: true }
    })
  } catch (error) {
    if (error instanceof DayIsSpent) return 'spent'
    throw error
  }
}

function keyOf({ app, subscription, periodEnd, stage }: DueReminder): ReminderKey {
  return { appId: app.id, subscriptionId: subscription.id, periodEnd, stage }
}

function newClaimOf(ctx: Context, due: DueReminder, now: RealTime): NewClaim {
  return { ...keyOf(due), countedOn: dailyLimit(ctx.config, due.app) === null ? null : formatDay(now) }
}

/** Takes places among the apps' mails of the day: the claims go with the transaction where an app has not so many. */
async function countByApp(tx: Tx, mails: readonly DueReminder[], day: string): Promise<void> {
  const byApp = Map.groupBy(mails, ({ app }) => app.id)
  // In one order, so that daemons do not wait for each other in a circle.
  for (const [appId, ofApp] of [...byApp].sort(([a], [b]) => a - b)) {
    const limit = ofApp[0] ? dailyLimit(tx.ctx.config, ofApp[0].app) : null
    if (limit !== null && !(await countMails(tx, appId, day, ofApp.length, limit))) throw new DayIsSpent()
  }
}
