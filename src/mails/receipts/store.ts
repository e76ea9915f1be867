import { following, where, type Condition, type Position } from '#db/conditions.ts'
import type { Queries } from '#db/queries.ts'
import type { RealTime } from '#shared/time.ts'
import { receipts, type Receipt } from '#transactions/receipts/store.ts'

/** The receipt `r` reports a part, and no more has arrived since; or it reports something that stays true. */
export const STILL_TRUE: Condition = [
  `(r.kind <> 'part' OR EXISTS (
     SELECT 1 FROM transactions t WHERE t.id = r.transaction_id AND t.status = 'pending' AND t.amount_received = r.total))`,
]

/** Receipts of a status that may be claimed by `now`, and follow `after`. */
export async function listDueReceipts(
  db: Queries,
  status: 'due' | 'failed',
  now: RealTime,
  after: Position | null,
  limit: number,
): Promise<Receipt[]> {
  const { sql, params } = where(
    ['status = ? AND next_try_at <= ?', status, now],
    following(after, ['next_try_at', 'id'], 'asc'),
  )
  return db.all(receipts, `${sql} ORDER BY next_try_at, id LIMIT ?`, [...params, limit])
}
