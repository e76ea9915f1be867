import { findApp } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { databaseNow } from '#db/database-now.ts'
import { listAbandoned } from '#realtime/store.ts'
import { settleNode } from '#realtime/write-node.ts'
import { addMs, type RealTime } from '#shared/time.ts'
import { loadNodeState } from './queue-node.ts'

/** Whether a node is left to write. */
export async function hasAbandonedWrites(ctx: Context): Promise<boolean> {
  return (await listAbandoned(ctx.db, await abandonedBefore(ctx), 1)).length > 0
}

async function abandonedBefore(ctx: Context): Promise<RealTime> {
  return addMs(await databaseNow(ctx, ctx.db), -ABANDONED_MS)
}

/** A wish this old has no caller any more that waits for it: none waits longer than 5 s. */
const ABANDONED_MS = 15_000
/** Of one run; what is left is for the next. */
const MAX_WRITES = 100
const HANDFUL = 5

/**
 * Writes the nodes whose writer died between the commit and the write, or left the turn to others (contract 4, Realtime node).
 * Failed writes are not among them, nor those that fail here: they are an operator's to repeat.
 */
export async function finishPendingWrites(
  ctx: Context,
  options: { readonly signal?: AbortSignal } = {},
): Promise<{ written: number; failed: number }> {
  const tally = { written: 0, failed: 0 }
  const rows = await listAbandoned(ctx.db, await abandonedBefore(ctx), MAX_WRITES)
  for (let start = 0; start < rows.length && !options.signal?.aborted; start += HANDFUL) {
    const outcomes = await Promise.all(rows.slice(start, start + HANDFUL).map((row) => finishOne(ctx, row)))
    for (const isWritten of outcomes) tally[isWritten ? 'written' : 'failed'] += 1
  }
  return tally
}

async function finishOne(ctx: Context, row: { subscriptionId: number; appId: number }): Promise<boolean> {
  const app = await findApp(ctx.db, row.appId)
  if (!app) return false
  const { subscriptionId } = row
  const load = (id: number) => loadNodeState(ctx, id)
  return (await settleNode(ctx, { app, subscriptionId, load }, 'change')) === 'written'
}
