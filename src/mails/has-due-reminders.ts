import type { Context } from '#context.ts'
import { databaseNow } from '#db/database-now.ts'
import { findAppsAtLimit } from '#mails/daily-limit.ts'
import { findDue, listSweeps } from '#mails/find-due.ts'
import { listDeadClaims } from './store.ts'

/** Whether a mail is due now, or a sweep that died has left a claim. */
export async function hasDueReminders(ctx: Context): Promise<boolean> {
  if ((await listDeadClaims(ctx.db, await databaseNow(ctx, ctx.db), 1)).length > 0) return true
  const appsAtLimit = await findAppsAtLimit(ctx)
  for (const sweep of await listSweeps(ctx)) {
    if (!(await findDue(ctx, sweep, appsAtLimit).next()).done) return true
  }
  return false
}
