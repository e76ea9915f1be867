import type { Param, Queries } from '#db/queries.ts'
import { events } from '#webhooks/store.ts'

/** Events become as if all attempts of each had failed. `which` is what follows the table in a statement: `WHERE app_id = ? LIMIT 1`. */
export async function failEvents(db: Queries, which = '', params: readonly Param[] = []): Promise<void> {
  const failing = await db.all(events, which, params)
  if (failing.length === 0) throw new Error('no event is there to fail')
  const changes = { deliveryStatus: 'failed', attempts: 6, retriesLeft: 0, lastError: 'http_500' } as const
  const noMore = { nextAttemptAt: null, lease: 0, begun: false, leaseUntil: null }
  await db.update(events, { id: failing.map(({ id }) => id) }, { ...changes, ...noMore })
}
