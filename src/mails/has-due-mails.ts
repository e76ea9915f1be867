import type { Context } from '#context.ts'
import { databaseNow } from '#db/database-now.ts'
import { findAppsAtLimit } from './daily-limit.ts'
import { findDue } from './reminders/find-due.ts'
import { listClockGroups } from '#apps/clock-groups.ts'
import { listDueReceipts } from '#mails/receipts/store.ts'
import { listDeadClaims } from './claims/store.ts'
import { receipts } from '#transactions/receipts/store.ts'
import { reminders } from './reminders/store.ts'

/** Whether a mail is due now, or a sweep that died has left a claim. In a file of its own, because the daemon's main thread loads nothing that sends mails. */
export async function hasDueMails(ctx: Context): Promise<boolean> {
  const now = await databaseNow(ctx, ctx.db)
  for (const table of [reminders, receipts]) if ((await listDeadClaims(ctx.db, table, now, 1)).length > 0) return true
  for (const status of ['due', 'failed'] as const)
    if ((await listDueReceipts(ctx.db, status, now, null, 1)).length > 0) return true
  const appsAtLimit = await findAppsAtLimit(ctx)
  for (const group of await listClockGroups(ctx)) {
    if (!(await findDue(ctx, group, appsAtLimit).next()).done) return true
  }
  return false
}
