import { ApiError, ConnectionError } from './errors.ts'
import type { Page } from './list.ts'
import { formatTime, parseTime } from './times.ts'
import type { Event } from './types.ts'
import { pause } from './pause.ts'

export interface CatchUpOptions {
  /** Where to begin: the `cursor` that you stored last, or a time, from which on events are read. */
  readonly from?: string | Date | null | undefined
  /** An event may become visible that long after others with a later time; 300 by default. Longer than your service's transactions take, and than its clocks differ. */
  readonly overlapSeconds?: number | undefined
  /** Ends the iteration, without an error. */
  readonly signal?: AbortSignal | undefined
}

export interface FollowOptions extends CatchUpOptions {
  /** How long to wait before looking for new events again; 1 by default. */
  readonly pollSeconds?: number | undefined
}

/** An event, and where to continue when it has been handled: store the cursor in place of the last one. */
export interface Followed {
  readonly event: Event
  readonly cursor: string
}

/** Reads a page of the app's events. */
export type ReadEvents = (query: EventsQuery) => Promise<Page<Event>>

export interface EventsQuery {
  readonly order: 'asc' | 'desc'
  readonly limit: number
  readonly created_after?: string
  readonly cursor?: string
}

const PAGE = 100
const SECOND_MS = 1000
const OVERLAP_SECONDS = 300
/** Between attempts to reach a service that was reached before. */
const LONGEST_PAUSE_MS = 30_000

/** Yields every event since `from`, oldest first, and ends when it has caught up. Without `from` it begins with the first event. */
export async function* catchUp(
  read: ReadEvents,
  options: CatchUpOptions = {},
): AsyncGenerator<Followed, void, undefined> {
  yield* endedBy(options.signal, new Reading(read, { ...options, since: timeOf(options.from) }).pass())
}

/**
 * Yields every event since `from`, and then each new one: at least once, in the order of their times but for those that become visible late.
 * Without `from` it begins with what becomes visible from now on. It waits for a service that is away once it has been reached, and throws
 * what the service refuses.
 */
export async function* follow(
  read: ReadEvents,
  options: FollowOptions = {},
): AsyncGenerator<Followed, void, undefined> {
  yield* endedBy(options.signal, followOn(read, options))
}

async function* followOn(read: ReadEvents, options: FollowOptions): AsyncGenerator<Followed, void, undefined> {
  const { from, signal, pollSeconds = 1 } = options
  const patient = waiting(read, signal)
  const reading =
    from === undefined || from === null
      ? await Reading.fromNow(patient, options)
      : new Reading(patient, { ...options, since: timeOf(from) })
  for (;;) {
    yield* reading.pass()
    await pause(pollSeconds * SECOND_MS, signal)
  }
}

/** Ends without an error when the signal does. */
async function* endedBy(
  signal: AbortSignal | undefined,
  events: AsyncGenerator<Followed, void, undefined>,
): AsyncGenerator<Followed, void, undefined> {
  try {
    for await (const followed of events) {
      if (signal?.aborted) return
      yield followed
    }
  } catch (error) {
    if (!signal?.aborted) throw error
  }
}

interface ReadingOptions extends CatchUpOptions {
  /** In milliseconds since 1970; null begins with the first event. */
  readonly since: number | null
}

/**
 * Reads events by their times, an overlap of them again and again: an event is dated when its transaction begins, and becomes visible when it
 * commits. An event that was read is not yielded a second time.
 */
class Reading {
  readonly #read: ReadEvents
  readonly #overlapMs: number
  /** What was read, with its time, where it may be read again. */
  readonly #seen = new Map<string, number>()
  /** Every event that is older has been yielded. */
  #since: number | null
  #newest = -Infinity
  /** The newest event at the end of a pass, and when that was: a sandbox's time may jump while a transaction is under way. */
  readonly #passes: { readonly at: number; readonly newest: number }[] = []
  #overlapDue = 0

  constructor(read: ReadEvents, { since, overlapSeconds = OVERLAP_SECONDS }: ReadingOptions) {
    this.#read = read
    this.#overlapMs = overlapSeconds * SECOND_MS
    this.#since = since
  }

  /** Begins with what becomes visible from now on. */
  static async fromNow(read: ReadEvents, options: CatchUpOptions): Promise<Reading> {
    const { data } = await read({ order: 'desc', limit: 1 })
    const [newest] = data
    const reading = new Reading(read, { ...options, since: null })
    if (newest === undefined) return reading
    reading.#newest = createdAt(newest)
    reading.#endPass()
    const known = reading.pass()
    while ((await known.next()).done !== true);
    return reading
  }

  /** Yields what is visible now and was not read before. */
  async *pass(): AsyncGenerator<Followed, void, undefined> {
    const startedAt = performance.now()
    const isOverlap = startedAt >= this.#overlapDue
    const since = isOverlap ? this.#since : this.#newest
    const query = {
      order: 'asc',
      limit: PAGE,
      ...(since === null ? {} : { created_after: secondBefore(since) }),
    } as const
    let cursor: string | null = null
    let pages = 0
    do {
      const page: Page<Event> = await this.#read(cursor === null ? query : { ...query, cursor })
      for (const event of page.data) if (this.#isNew(event)) yield { event, cursor: this.#cursorAt(event) }
      cursor = page.next_cursor
      pages += 1
    } while (cursor !== null)
    // An overlap of many pages is read less often than what is new.
    if (isOverlap) this.#overlapDue = startedAt + (pages - 1) * SECOND_MS
    this.#endPass()
  }

  #isNew(event: Event): boolean {
    if (this.#seen.has(event.id)) return false
    this.#seen.set(event.id, createdAt(event))
    this.#newest = Math.max(this.#newest, createdAt(event))
    return true
  }

  /** What is older than an event was yielded before it, but for what is not visible yet. */
  #cursorAt(event: Event): string {
    return formatTime(new Date(Math.max(this.#settledBefore(createdAt(event)), this.#since ?? 0, 0)))
  }

  /** Where to begin to read again when everything that is visible up to `time` was read. */
  #settledBefore(time: number): number {
    return Math.min(time - this.#overlapMs, this.#passes[0]?.newest ?? Infinity)
  }

  #endPass(): void {
    if (this.#newest === -Infinity) return
    const now = performance.now()
    if (this.#passes.at(-1)?.newest !== this.#newest) this.#passes.push({ at: now, newest: this.#newest })
    while ((this.#passes[1]?.at ?? Infinity) <= now - this.#overlapMs) this.#passes.shift()
    const settled = this.#settledBefore(this.#newest)
    this.#since = Math.max(this.#since ?? settled, settled)
    for (const [id, time] of this.#seen) if (time < this.#since) this.#seen.delete(id)
  }
}

/** Reads on when the service is away for a while, once it has been reached. */
function waiting(read: ReadEvents, signal: AbortSignal | undefined): ReadEvents {
  let isReached = false
  return async (query) => {
    for (let wait = SECOND_MS; ; wait = Math.min(2 * wait, LONGEST_PAUSE_MS)) {
      try {
        const page = await read(query)
        isReached = true
        return page
      } catch (error) {
        if (!isReached || signal?.aborted || !isPassing(error)) throw error
        await pause(wait, signal)
      }
    }
  }
}

function isPassing(error: unknown): boolean {
  if (error instanceof ApiError) return error.status === 429 || error.status >= 500
  return error instanceof ConnectionError
}

function createdAt({ created_at }: Event): number {
  return parseTime(created_at).getTime()
}

/** `created_after` leaves out its own second. */
function secondBefore(time: number): string {
  return formatTime(new Date(time - SECOND_MS))
}

function timeOf(from: string | Date | null | undefined): number | null {
  if (from === null || from === undefined) return null
  return (typeof from === 'string' ? parseTime(from) : from).getTime()
}
