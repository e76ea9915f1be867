import type { Context } from '#context.ts'
import { timedOut } from '#db/database-error.ts'
import { expectedWaitMs, noteArrival, onEntry, type Standing } from './entry-queue.ts'
import type { Queries } from '#db/queries.ts'
import type { SharedRead } from '#db/shared-read.ts'
import { BoundedMap } from '#shared/bounded-map.ts'
import { isHex64 } from '#shared/crypto.ts'
import { AppError } from '#shared/errors.ts'
import { SECOND_MS } from '#shared/time.ts'

const RETRY_AFTER_SECONDS = 1
/** A caller that would wait longer for the database gets 429 (R241). */
const PATIENCE_MS = 2 * SECOND_MS
/**
 * Under lasting overload, every wait would grow beyond that. Measured with 2,000 checkouts a second offered to a daemon that opens 900
 * (`npm run trials overload`). A queue of half a second kept the database busy and every accepted call within 2 s; a queue of 0.75 s did
 * not.
 */
const MAX_WRITE_WAIT_MS = 500
const MAX_READ_WAIT_MS = 300
/** So many calls may be one burst, whose reads are answered (R241). */
const BURST = 500
/** A queue in which this process was idle for longer waits for a slow database: it is no burst, and reads must leave room for changes. */
const MAX_BURST_IDLE_MS = SECOND_MS
/** A notification is about money: it waits as long as work under way does, and its provider repeats it after a 500. */
const NOTIFIER_PATIENCE_MS = 10 * SECOND_MS

/**
 * Refuses a call of the API under overload, before its signature is checked, so that a refusal costs little and accepted calls are
 * served in time. Throws `rate_limited` (429) if the caller would wait too long at the queue's current pace. Reads (`isRead`) are
 * refused earlier, so that payments are served for longer.
 */
export function refuseOverload(ctx: Context, isRead: boolean): void {
  const { calls, idleMs } = noteArrival(ctx.db.pool)
  if (isRead && calls <= BURST && idleMs <= MAX_BURST_IDLE_MS) return
  if (isOverload(expectedWaitMs(ctx.db.pool), isRead)) throw TOO_MANY
}

export function isOverload(expectedMs: number, isRead: boolean): boolean {
  return expectedMs > (isRead ? MAX_READ_WAIT_MS : MAX_WRITE_WAIT_MS)
}

/**
 * Makes the first read of a request; no work is done for the request before it. Callers who are not known to be genuine share a few
 * connections (`http/entry-queue.ts`), so that a flood of them delays no other caller. Throws `rate_limited` (429) with `Retry-After` if
 * the caller would wait longer than 2 s for the database.
 */
export function admit<T>(ctx: Context, standing: Standing, read: (db: Queries) => Promise<T>): Promise<T> {
  const isNotifier = standing === 'notifier'
  const request = {
    standing,
    patienceMs: isNotifier ? NOTIFIER_PATIENCE_MS : PATIENCE_MS,
    late: isNotifier ? () => timedOut('no connection to the database became free for a notification') : () => TOO_MANY,
  }
  return onEntry(ctx.db.pool, request, read)
}

/** `admit` for a row by its key; null if there is none. Concurrent callers of the same standing share the read. */
export function admitByKey<Key, Row>(
  ctx: Context,
  standing: Standing,
  rows: SharedRead<Key, Row>,
  key: Key,
): Promise<Row | null> {
  return rows.find(ctx.db, key, standing, (read) => admit(ctx, standing, read))
}

/** One instance for all refusals, which must cost little under overload: capturing the stack is most of an error's cost. */
const TOO_MANY = new AppError('rate_limited', `too many requests at once: try again in ${RETRY_AFTER_SECONDS} s`, {
  headers: { 'Retry-After': String(RETRY_AFTER_SECONDS) },
})

/** More than a daemon serves in an hour; takes a few megabytes. */
const MAX_PROVEN = 10_000

/**
 * Makes a map for callers that proved genuine recently. Only they are added, so that a flood of strangers drops none. It only selects the
 * queue in which a caller waits: permissions are read from the database every time, so that a revocation takes effect at once.
 */
export function recentlyProven<Value>(): BoundedMap<string, Value> {
  return new BoundedMap(MAX_PROVEN)
}

const provenTokens = recentlyProven<true>()

/** Whether the text has the form of a hosted page's token; others are not looked up. */
export function isPageToken(text: string): boolean {
  return isHex64(text)
}

/** `admitByKey` by the token of a hosted page; null if there is no such token. */
export async function admitByToken<Row>(
  ctx: Context,
  token: string,
  rows: SharedRead<string, Row>,
): Promise<Row | null> {
  if (!isPageToken(token)) return null
  const found = await admitByKey(ctx, provenTokens.get(token) ? 'known' : 'stranger', rows, token)
  if (found !== null) provenTokens.set(token, true)
  return found
}
