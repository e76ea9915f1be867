import { where } from '#db/conditions.ts'
import type { Queries } from '#db/queries.ts'
import type { RealTime } from '#shared/time.ts'
import { receipts, type Receipt } from '#transactions/receipts/store.ts'

/** Receipts of a status that may be claimed by `now`, and follow `after`. */
export async function listDueReceipts(
  db: Queries,
  status: 'due' | 'failed',
  now: RealTime,
  after: Pick<Receipt, 'id' | 'retryAt'> | null,
  limit: number,
): Promise<Receipt[]> {
  const { sql, params } = where(
    ['status = ? AND next_try_at <= ?', status, now],
    after && ['(next_try_at > ? OR (next_try_at = ? AND id > ?))', after.retryAt, after.retryAt, after.id],
  )
  return db.all(receipts, `${sql} ORDER BY next_try_at, id LIMIT ?`, [...params, limit])
}
