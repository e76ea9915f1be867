import { findApp } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { databaseNow } from '#db/database-now.ts'
import { listAbandoned } from '#realtime/store.ts'
import { addMs, type RealTime } from '#shared/time.ts'
import { writeNodeOf } from './queue-node.ts'

/** No caller waits for a write this old: none waits longer than 6 s. */
const ABANDONED_MS = 15_000
/** Per run; the next run takes the rest. */
const MAX_WRITES = 100
const BATCH = 5

/** Whether any write was abandoned. */
export async function hasAbandonedWrites(ctx: Context): Promise<boolean> {
  return (await listAbandoned(ctx.db, await abandonedBefore(ctx), 1)).length > 0
}

async function abandonedBefore(ctx: Context): Promise<RealTime> {
  return addMs(await databaseNow(ctx, ctx.db), -ABANDONED_MS)
}

/**
 * Writes the nodes whose writer died between the commit and the write, or ran out of time (R161). Failed writes, including those that fail
 * here, are left to an operator: `realtime resync --failed`.
 */
export async function finishPendingWrites(
  ctx: Context,
  options: { readonly signal?: AbortSignal } = {},
): Promise<{ written: number; failed: number }> {
  const tally = { written: 0, failed: 0 }
  const rows = await listAbandoned(ctx.db, await abandonedBefore(ctx), MAX_WRITES)
  for (let start = 0; start < rows.length && !options.signal?.aborted; start += BATCH) {
    const outcomes = await Promise.all(rows.slice(start, start + BATCH).map((row) => finishOne(ctx, row)))
    for (const isWritten of outcomes) tally[isWritten ? 'written' : 'failed'] += 1
  }
  return tally
}

async function finishOne(ctx: Context, row: { subscriptionId: number; appId: number }): Promise<boolean> {
  const app = await findApp(ctx.db, row.appId)
  if (!app) return false
  return (await writeNodeOf(ctx, app, row.subscriptionId, 'change')) === 'written'
}
