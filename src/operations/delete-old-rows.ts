import type { Context } from '#context.ts'
import { deleteOldJobRuns } from '#db/store.ts'
import { inTransaction } from '#db/transaction.ts'
import type { Tx } from '#db/transaction.ts'
import { ANSWER_KEPT_MS } from '#http/idempotency.ts'
import { deleteOldIdempotencyKeys } from '#http/store.ts'
import { addMs, DAY_MS } from '#shared/time.ts'

const BATCH_SIZE = 50
const JOB_RUNS_KEPT_MS = 30 * DAY_MS

/** Removes kept answers of idempotency keys and records of job runs that are past their time, in small transactions. */
export async function deleteOldRows(
  ctx: Context,
  options: { readonly signal?: AbortSignal } = {},
): Promise<{ keysDeleted: number; runsDeleted: number }> {
  const { signal } = options
  const keysDeleted = await inBatches(ctx, signal, (tx) =>
    deleteOldIdempotencyKeys(tx, addMs(tx.now, -ANSWER_KEPT_MS), BATCH_SIZE),
  )
  const runsDeleted = await inBatches(ctx, signal, (tx) =>
    deleteOldJobRuns(tx, addMs(tx.now, -JOB_RUNS_KEPT_MS), BATCH_SIZE),
  )
  return { keysDeleted, runsDeleted }
}

async function inBatches(
  ctx: Context,
  signal: AbortSignal | undefined,
  remove: (tx: Tx) => Promise<number>,
): Promise<number> {
  let removed = 0
  while (!signal?.aborted) {
    const batch = await inTransaction(ctx, remove)
    removed += batch
    if (batch < BATCH_SIZE) break
  }
  return removed
}
