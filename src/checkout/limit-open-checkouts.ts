import { AppError } from '#shared/errors.ts'
import { HOUR_MS, SECOND_MS, type AppTime } from '#shared/time.ts'
import type { Tx } from '#commands/transaction.ts'
import { findNextFreeSlot } from './store.ts'

/** How many checkouts of an end user may be open if its client opens them. */
const MAX_OPEN = 100

/**
 * Refuses a client more than `MAX_OPEN` open checkouts, because each is a transaction that is stored permanently. `now` is the app's own
 * time. Call it under the end user's lock. Throws `rate_limited` with `Retry-After`.
 */
export async function limitOpenCheckouts(tx: Tx, endUserId: number, now: AppTime): Promise<void> {
  const freeAt = await findNextFreeSlot(tx, endUserId, MAX_OPEN, now)
  if (!freeAt) return
  const seconds = Math.ceil(Math.min(freeAt.getTime() - now.getTime(), HOUR_MS) / SECOND_MS)
  throw new AppError(
    'rate_limited',
    `this end user has ${MAX_OPEN} open checkouts, the most that a client may open: pay one, or try again in ${seconds} s`,
    { headers: { 'Retry-After': String(seconds) } },
  )
}
