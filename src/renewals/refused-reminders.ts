import type { Context } from '#context.ts'
import { recordAudit } from '#commands/audit.ts'
import { inTransaction } from '#commands/transaction.ts'
import { databaseNow } from '#db/database-now.ts'
import { DAY_MS, addMs, formatTimestamp } from '#shared/time.ts'
import { freeRefused, listRefused } from './store.ts'

/** Longer than all stages of a period are open. */
const LISTED_FOR_MS = 14 * DAY_MS
const MOST_LISTED = 1000
const BATCH = 100

/** A mail that is not sent because the mail server said that there is no such address, and the customer still has it. */
export interface RefusedReminderView {
  readonly reminder_id: number
  readonly app_id: number
  readonly external_ref: string
  readonly reminder_day: 3 | 1 | 0
  readonly period_end: string
  readonly to: string
  readonly refused_at: string
  readonly last_error: string | null
}

/** For operators: sent as soon as the customer has another address. Newest first, at most 1000. */
export async function listRefusedReminders(ctx: Context): Promise<RefusedReminderView[]> {
  const rows = await listRefused(ctx.db, addMs(await databaseNow(ctx, ctx.db), -LISTED_FOR_MS), MOST_LISTED)
  return rows.map((row) => ({
    reminder_id: row.id,
    app_id: row.appId,
    external_ref: row.externalRef,
    reminder_day: row.stage,
    period_end: formatTimestamp(row.periodEnd),
    to: row.refusedTo,
    refused_at: formatTimestamp(row.refusedAt),
    last_error: row.lastError,
  }))
}

/** An operator mended what made the server refuse: the next sweep tries all of them again whose stage still holds. Returns how many. */
export async function retryRefusedReminders(ctx: Context, actor: string): Promise<number> {
  const refused = await listRefusedReminders(ctx)
  let freed = 0
  for (let start = 0; start < refused.length; start += BATCH) {
    const ids = refused.slice(start, start + BATCH).map((row) => row.reminder_id)
    freed += await inTransaction(ctx, async (tx) => {
      const count = await freeRefused(tx, ids)
      await recordAudit(tx, {
        actor,
        action: 'reminder.retry',
        subject: 'refused reminders',
        after: { reminder_ids: ids },
      })
      return count
    })
  }
  return freed
}
