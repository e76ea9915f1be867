import type { Context } from '#context.ts'
import type { Caller } from '#commands/caller.ts'
import { command, nothing } from '#commands/command.ts'
import { perform } from '#commands/perform.ts'
import { databaseNow } from '#db/database-now.ts'
import { readPages } from '#db/read-pages.ts'
import { listSelected, selectRefusedReminders, type ReminderWithOwner } from '#mails/lists/store.ts'
import { releaseRefused } from './store.ts'

const BATCH = 100

/** Lets the next sweep retry all refused mails whose stage still applies, after an operator fixed the cause. Returns how many. */
export async function retryRefusedReminders(ctx: Context, caller: Caller): Promise<number> {
  let retried = 0
  const pages = readPages<ReminderWithOwner>(BATCH, async (last, limit) => {
    const after = last && { at: last.claimedAt, id: last.id }
    return listSelected(ctx.db, selectRefusedReminders(await databaseNow(ctx, ctx.db)), { after, limit })
  })
  for await (const page of pages)
    retried += await perform(ctx, caller, retryBatch, undefined, { reminderIds: page.map(({ id }) => id) })
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
