import type { App } from '#apps/store.ts'
import type { Config } from '#config/config.ts'
import type { Context } from '#context.ts'
import { databaseNow } from '#db/database-now.ts'
import { formatDay } from '#shared/time.ts'
import { listAppsAtLimit } from './limits/store.ts'

/** Enough to try everything, too few to spam strangers. */
const SANDBOX_MAILS_PER_DAY = 200

/** How many mails the app may send in one UTC day of real time; null for no limit (R175). */
export function dailyLimit(config: Config, app: Pick<App, 'isSandbox'>): number | null {
  const limit = config.mailsPerAppPerDay === 0 ? null : config.mailsPerAppPerDay
  return app.isSandbox ? Math.min(limit ?? SANDBOX_MAILS_PER_DAY, SANDBOX_MAILS_PER_DAY) : limit
}

/**
 * The daily limit that the app's receipts share with its reminders; null if receipts are unlimited. A live app sends only as many receipts
 * as it has payments. A sandbox app's payments cost nothing, so a program can make any number of them.
 */
export function receiptLimit(config: Config, app: Pick<App, 'isSandbox'>): number | null {
  return app.isSandbox ? dailyLimit(config, app) : null
}

/** Apps that have reached today's limit: their other due mails are held back until the next day. */
export async function findAppsAtLimit(ctx: Context): Promise<Set<number>> {
  const limits = {
    live: dailyLimit(ctx.config, { isSandbox: false }),
    sandbox: dailyLimit(ctx.config, { isSandbox: true }),
  }
  return new Set(await listAppsAtLimit(ctx.db, formatDay(await databaseNow(ctx, ctx.db)), limits))
}
