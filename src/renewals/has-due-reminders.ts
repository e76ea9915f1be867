import type { Context } from '#context.ts'
import { databaseNow } from '#db/database-now.ts'
import { findSpentApps } from './daily-limit.ts'
import { findDue, listSweeps } from './find-due.ts'
import { listDeadClaims } from './store.ts'

/** Whether a mail is due now, or a claim is left of a sweep that died. */
export async function hasDueReminders(ctx: Context): Promise<boolean> {
  if ((await listDeadClaims(ctx.db, await databaseNow(ctx, ctx.db), 1)).length > 0) return true
  const spentApps = await findSpentApps(ctx)
  for (const sweep of await listSweeps(ctx)) {
    if (!(await findDue(ctx, sweep, spentApps).next()).done) return true
  }
  return false
}
