import type { App } from '#apps/store.ts'
import type { Config } from '#config.ts'
import type { Context } from '#context.ts'
import { databaseNow } from '#db/database-now.ts'
import { formatDay } from '#shared/time.ts'
import { listAppsAtLimit } from './store.ts'

/** Enough to try everything, too few to spam strangers. */
const SANDBOX_MAILS_PER_DAY = 200

/** How many reminder mails the app may send in one UTC day of real time; null for no limit (contract 7, Callers). */
export function dailyLimit(config: Config, app: Pick<App, 'isSandbox'>): number | null {
  const limit = config.mailsPerAppPerDay === 0 ? null : config.mailsPerAppPerDay
  return app.isSandbox ? Math.min(limit ?? SANDBOX_MAILS_PER_DAY, SANDBOX_MAILS_PER_DAY) : limit
}

/** Apps that have reached today's limit: their other due mails are held back until the next day. */
export async function findAppsAtLimit(ctx: Context): Promise<Set<number>> {
  const limits = {
    live: dailyLimit(ctx.config, { isSandbox: false }),
    sandbox: dailyLimit(ctx.config, { isSandbox: true }),
  }
  return new Set(await listAppsAtLimit(ctx.db, formatDay(await databaseNow(ctx, ctx.db)), limits))
}
