import type { Context } from '#context.ts'
import type { Caller } from '#commands/caller.ts'
import { command, nothing } from '#commands/command.ts'
import { perform } from '#commands/perform.ts'
import { databaseNow } from '#db/database-now.ts'
import type { Position } from '#db/conditions.ts'
import { listPage, pageBy, presentPage, type Page, type PageRequest } from '#http/page-of.ts'
import { DAY_MS, addMs, formatTimestamp, type RealTime } from '#shared/time.ts'
import { countSelected, listWithOwner, refused, releaseRefused, type ReminderWithOwner } from './store.ts'

/** Longer than the stages of one period last. */
const LISTED_FOR_MS = 14 * DAY_MS
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

/** A page of them, newest first. They are sent as soon as the customer has another address. */
export async function listRefusedReminders(ctx: Context, page: unknown = {}): Promise<Page<RefusedReminderView>> {
  const selected = refused(await listedSince(ctx))
  const list = (request: PageRequest) => listWithOwner(ctx.db, selected, request)
  return presentPage(await listPage(page, list, ({ claimedAt }) => claimedAt), present)
}

/** How many there are. */
export async function countRefusedReminders(ctx: Context): Promise<number> {
  return countSelected(ctx.db, refused(await listedSince(ctx)))
}

async function listedSince(ctx: Context): Promise<RealTime> {
  return addMs(await databaseNow(ctx, ctx.db), -LISTED_FOR_MS)
}

function present(row: ReminderWithOwner): RefusedReminderView {
  return {
    reminder_id: row.id,
    app_id: row.appId,
    external_ref: row.externalRef,
    reminder_day: row.stage,
    period_end: formatTimestamp(row.periodEnd),
    to: row.refusedTo ?? '',
    refused_at: formatTimestamp(row.claimedAt),
    last_error: row.lastError,
  }
}

/** Lets the next sweep retry all refused mails whose stage still applies, after an operator fixed the cause. Returns how many. */
export async function retryRefusedReminders(ctx: Context, caller: Caller): Promise<number> {
  let retried = 0
  let below: Position | null = null
  do {
    const selected = refused(await listedSince(ctx))
    const found: ReminderWithOwner[] = await listWithOwner(ctx.db, selected, { below, limit: BATCH + 1 })
    const { rows, next }: Page<ReminderWithOwner> = pageBy(found, BATCH, ({ claimedAt }) => claimedAt)
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
