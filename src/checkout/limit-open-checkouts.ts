import { AppError } from '#shared/errors.ts'
import { HOUR_MS, SECOND_MS, type AppTime } from '#shared/time.ts'
import type { Tx } from '#commands/transaction.ts'
import { findWhenPlaceIsFree } from './store.ts'

/** As many checkouts may the client of an end user have open. */
const MOST_OPEN = 100

/**
 * Refuses the client of an end user one more open checkout than `MOST_OPEN`: each is a transaction that is kept. `now` is in the
 * app's own time. Call it under the end user's lock. Throws `rate_limited` with `Retry-After`.
 */
export async function limitOpenCheckouts(tx: Tx, endUserId: number, now: AppTime): Promise<void> {
  const freeAt = await findWhenPlaceIsFree(tx, endUserId, MOST_OPEN, now)
  if (!freeAt) return
  const seconds = Math.ceil(Math.min(freeAt.getTime() - now.getTime(), HOUR_MS) / SECOND_MS)
  throw new AppError(
    'rate_limited',
    `this end user has ${MOST_OPEN} open checkouts, the most that a client may open: pay one, or try again in ${seconds} s`,
    { headers: { 'Retry-After': String(seconds) } },
  )
}
