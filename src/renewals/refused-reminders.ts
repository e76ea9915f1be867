import type { Context } from '#context.ts'
import type { Caller } from '#commands/caller.ts'
import { command, nothing } from '#commands/command.ts'
import { perform } from '#commands/perform.ts'
import { databaseNow } from '#db/database-now.ts'
import { DAY_MS, addMs, formatTimestamp } from '#shared/time.ts'
import { releaseRefused, listRefused } from './store.ts'

/** Longer than the stages of one period last. */
const LISTED_FOR_MS = 14 * DAY_MS
const MOST_LISTED = 1000
const BATCH = 100

/** A mail that is not sent: the mail server said that the address does not exist, and the customer still has that address. */
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

/** Newest first, at most 1000. Each is sent as soon as the customer has another address. */
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

/** Lets the next sweep retry all refused mails whose stage still applies, after an operator fixed the cause. Returns how many. */
export async function retryRefusedReminders(ctx: Context, caller: Caller): Promise<number> {
  const refused = await listRefusedReminders(ctx)
  let freed = 0
  for (let start = 0; start < refused.length; start += BATCH) {
    const reminderIds = refused.slice(start, start + BATCH).map((row) => row.reminder_id)
    freed += await perform(ctx, caller, retryBatch, undefined, { reminderIds })
  }
  return freed
}

const retryBatch = command({
  name: 'reminder.retry',
  input: nothing,
  async run(tx, _input, { reminderIds }: { readonly reminderIds: readonly number[] }) {
    const freed = await releaseRefused(tx, reminderIds)
    await tx.audit({ subject: 'refused reminders', after: { reminder_ids: reminderIds } })
    return freed
  },
})
