import type { Context } from '#context.ts'
import { databaseNow } from '#db/database-now.ts'
import { deleteOldJobRuns } from './job-runs/store.ts'
import { deleteOldCommitTokens } from '#commands/store.ts'
import { inTransaction, type Tx } from '#commands/transaction.ts'
import { ANSWER_KEPT_MS } from '#http/idempotency.ts'
import { deleteOldIdempotencyKeys } from '#http/store.ts'
import { deleteMoneylessMails } from '#bank-mail/store.ts'
import { deleteOldDailyMails } from '#mails/limits/store.ts'
import { addMs, DAY_MS, type RealTime } from '#shared/time.ts'
import { deleteOldReceipts } from '#transactions/receipts/store.ts'
import { deleteOldAttempts } from '#webhooks/attempts/store.ts'

const BATCH_SIZE = 50

interface Kept {
  readonly name: string
  readonly forMs: number
  /** Removes up to `limit` rows older than `before`; returns how many. */
  readonly remove: (tx: Tx, before: RealTime, limit: number) => Promise<number>
}

/**
 * Rows that are kept for a limited time (docs/operating.md, What is kept how long). The alerts job removes old alerts; everything else
 * stays. The ledger, the API and `transaction show` read events, payments and reminders of any age. The references in `payments` and ids in
 * `provider_events` keep money from being booked twice.
 */
const KEPT = [
  { name: 'keysDeleted', forMs: ANSWER_KEPT_MS, remove: deleteOldIdempotencyKeys },
  { name: 'tokensDeleted', forMs: DAY_MS, remove: deleteOldCommitTokens },
  { name: 'runsDeleted', forMs: 30 * DAY_MS, remove: deleteOldJobRuns },
  { name: 'dailyMailsDeleted', forMs: 30 * DAY_MS, remove: deleteOldDailyMails },
  { name: 'mailsDeleted', forMs: 90 * DAY_MS, remove: deleteMoneylessMails },
  { name: 'attemptsDeleted', forMs: 400 * DAY_MS, remove: deleteOldAttempts },
  { name: 'receiptsDeleted', forMs: 400 * DAY_MS, remove: deleteOldReceipts },
] as const satisfies readonly Kept[]

export type DeletedRows = Record<(typeof KEPT)[number]['name'], number>

/**
 * Removes expired rows in small transactions. Safe when several daemons do so at once. Their age counts by the database's clock: a machine
 * with a wrong one would remove what is still needed.
 */
export async function deleteOldRows(
  ctx: Context,
  options: { readonly signal?: AbortSignal } = {},
): Promise<DeletedRows> {
  const now = await databaseNow(ctx, ctx.db)
  const deleted: [name: string, rows: number][] = []
  for (const { name, forMs, remove } of KEPT)
    deleted.push([name, await inBatches(ctx, options.signal, (tx) => remove(tx, addMs(now, -forMs), BATCH_SIZE))])
  return Object.fromEntries(deleted) as DeletedRows
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
