import type { Context } from '#context.ts'
import { expectedWaitMs, inTurn } from '#db/turns.ts'
import type { Queries } from '#db/queries.ts'
import type { SharedRead } from '#db/shared-read.ts'
import { AppError } from '#shared/errors.ts'
import { SECOND_MS } from '#shared/time.ts'

/**
 * Who asks, as far as it is known before the database is asked: a caller that proved genuine lately, somebody else, or whoever
 * sends a provider's notification.
 */
export type Standing = 'known' | 'stranger' | 'notifier'

const RETRY_AFTER_SECONDS = 1
/** Contract 7, Overload: a caller that would wait longer for the database is turned away. */
const PATIENCE_MS = 2 * SECOND_MS
/**
 * In a crowd that lasts, everybody's wait would grow beyond that. Measured with 2,000 checkouts a second offered to a daemon that opens
 * 900 (`npm run trials overload`): a queue of half a second keeps the database busy and every accepted call within 2 s, one of 0.75 s
 * did not.
 */
const LONGEST_WRITE_WAIT_MS = 500
const LONGEST_READ_WAIT_MS = 300
/** A notification is about money: it waits as long as work that is under way does, and its provider repeats it after a 500. */
const NOTIFIER_PATIENCE_MS = 10 * SECOND_MS

/**
 * What is asked of a call of the API before anything is done for it, even before its signature is checked: a crowd costs little that
 * way, and whoever is let in is served in time. Throws `rate_limited` (429) where the caller would wait too long for its turn, as the
 * queue moves now. `isRead`: reads are refused first, so that those who pay are served longer.
 */
export function refuseCrowd(ctx: Context, isRead: boolean): void {
  if (isCrowd(expectedWaitMs(ctx.db.pool), isRead)) throw TOO_MANY
}

export function isCrowd(expectedMs: number, isRead: boolean): boolean {
  return expectedMs > (isRead ? LONGEST_READ_WAIT_MS : LONGEST_WRITE_WAIT_MS)
}

/**
 * The first read of a request, before which nothing is done for it. Callers who are not known to be genuine share a few connections
 * (`db/turns.ts`), so that a flood of them delays nobody else. Throws `rate_limited` (429) with `Retry-After` where the database
 * would keep the caller waiting for longer than 2 s.
 */
export function admit<T>(ctx: Context, standing: Standing, read: (db: Queries) => Promise<T>): Promise<T> {
  const isNotifier = standing === 'notifier'
  const turn = {
    isStranger: standing !== 'known',
    goesFirst: isNotifier,
    patienceMs: isNotifier ? NOTIFIER_PATIENCE_MS : PATIENCE_MS,
    late: isNotifier ? () => new Error('no connection to the database became free for a notification') : () => TOO_MANY,
  }
  return inTurn(ctx.db.pool, turn, read)
}

/** `admit` for a row that is read by its key; null where there is none. Callers of the same standing share the read. */
export function admitByKey<Key, Row>(
  ctx: Context,
  standing: Standing,
  rows: SharedRead<Key, Row>,
  key: Key,
): Promise<Row | null> {
  return rows.find(ctx.db, key, standing, (read) => admit(ctx, standing, read))
}

/** One for all: what is refused in a crowd shall cost little, and noting where an error is made costs most of it. */
const TOO_MANY = new AppError('rate_limited', `too many requests at once: try again in ${RETRY_AFTER_SECONDS} s`, {
  headers: { 'Retry-After': String(RETRY_AFTER_SECONDS) },
})

/** More than one daemon serves in an hour, in a few megabytes. */
const MOST_PROVEN = 10_000

/**
 * What proved genuine lately; the oldest goes first. It chooses in which queue a caller waits and nothing else: what a caller may do
 * is read from the database each time, so that what is revoked is void at once.
 */
export class LatelyProven<Value = true> {
  readonly #kept = new Map<string, Value>()

  get(name: string): Value | undefined {
    return this.#kept.get(name)
  }

  add(name: string, value: Value): void {
    if (this.#kept.get(name) === value) return
    this.#kept.set(name, value)
    const [oldest] = this.#kept.keys()
    if (this.#kept.size > MOST_PROVEN && oldest !== undefined) this.#kept.delete(oldest)
  }
}

const provenTokens = new LatelyProven()

/** Whether the text can be the token of a hosted page; the database is not asked for others. */
export function isPageToken(text: string): boolean {
  return /^[0-9a-f]{64}$/.test(text)
}

/** `admitByKey` for what the token of a hosted page names; null where there is no such token. */
export async function admitByToken<Row>(
  ctx: Context,
  token: string,
  rows: SharedRead<string, Row>,
): Promise<Row | null> {
  if (!isPageToken(token)) return null
  const found = await admitByKey(ctx, provenTokens.get(token) ? 'known' : 'stranger', rows, token)
  if (found !== null) provenTokens.add(token, true)
  return found
}
