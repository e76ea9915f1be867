import type { Context } from '#context.ts'
import type { Caller } from '#commands/caller.ts'
import { command, nothing } from '#commands/command.ts'
import { perform } from '#commands/perform.ts'
import { databaseNow } from '#db/database-now.ts'
import type { Position } from '#db/conditions.ts'
import { pageBy, type Page } from '#http/page-of.ts'
import { listSelected, selectRefusedReminders, type ReminderWithOwner } from '#mails/lists/store.ts'
import { releaseRefused } from './store.ts'

const BATCH = 100

/** Lets the next sweep retry all refused mails whose stage still applies, after an operator fixed the cause. Returns how many. */
export async function retryRefusedReminders(ctx: Context, caller: Caller): Promise<number> {
  let retried = 0
  let below: Position | null = null
  do {
    const selection = selectRefusedReminders(await databaseNow(ctx, ctx.db))
    const found: ReminderWithOwner[] = await listSelected(ctx.db, selection, { below, limit: BATCH + 1 })
    const { rows, next }: Page<ReminderWithOwner> = pageBy(found, BATCH, selection.timeOf)
    const reminderIds = rows.map(({ id }) => id)
    if (reminderIds.length > 0) retried += await perform(ctx, caller, retryBatch, undefined, { reminderIds })
    below = next
  } while (below !== null)
  return retried
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
