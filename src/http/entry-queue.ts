import { AsyncLocalStorage } from 'node:async_hooks'
import type { Connection } from '#db/connection.ts'
import type { ConnectionPool } from '#db/pool.ts'
import { queriesOver, type Queries } from '#db/queries.ts'
import { QueuePace } from './queue-pace.ts'
import { readingAgain } from '#db/retry.ts'

/** How many connections are used and free, and how many callers wait for one. */
export type PoolUse = Readonly<Record<'used' | 'free' | 'waiting', number>>

export function poolUse(pool: ConnectionPool): PoolUse {
  const { limit, used, waiting } = pool.counts
  return { used, free: limit - used, waiting: waiting + (queues.get(pool)?.length ?? 0) }
}

/** How many milliseconds a known caller would wait if it arrived now; 0 while unknown. */
export function expectedWaitMs(pool: ConnectionPool): number {
  return queues.get(pool)?.expectedWaitMs ?? 0
}

/** Notes that a call arrives, whether it has to wait or not. Returns what has arrived since no known caller waited. */
export function noteArrival(pool: ConnectionPool): Arrivals {
  return queues.get(pool)?.noteArrival() ?? { calls: 0, idleMs: 0 }
}

/** The calls since no known caller waited, and how long this process has been idle since then. */
interface Arrivals {
  readonly calls: number
  readonly idleMs: number
}

/**
 * What is known about a caller before the database is asked: it proved genuine recently, it is a stranger, or it is a stranger that sends a
 * provider's notification. All strangers share a few of the connections. A notifier goes before all others, one at a time, because it
 * brings news of money.
 */
export type Standing = 'known' | 'stranger' | 'notifier'

/** A request for a first connection. */
export interface EntryRequest {
  readonly standing: Standing
  /** Maximum wait for the database. Time in which this process is busy does not count. */
  readonly patienceMs: number
  /** Makes the error for a caller that waited too long. No work has been done for it. */
  readonly late: () => Error
}

/**
 * Runs the first read of a request once a connection is free that no other caller waits for. Requests that have begun go first, so that
 * overload delays only new ones. Throws the error of `late` if no connection becomes free in time.
 */
export async function onEntry<T>(
  pool: ConnectionPool,
  request: EntryRequest,
  read: (db: Queries) => Promise<T>,
): Promise<T> {
  let queue = queues.get(pool)
  if (!queue) queues.set(pool, (queue = new EntryQueue(pool)))
  const entered = Promise.withResolvers<Connection>()
  // Bound to the context of this request, because the caller that releases a connection calls it.
  const take = AsyncLocalStorage.bind(() => void pool.take().then(entered.resolve, entered.reject))
  await queue.enter(request, take)
  try {
    let first: Promise<Connection> | null = entered.promise
    return await readingAgain(async () => {
      const taking = first ?? pool.take()
      first = null
      const connection = await taking
      try {
        return await read(queriesOver(connection.send))
      } finally {
        pool.release(connection)
      }
    })
  } finally {
    queue.left(request)
  }
}

/** Strangers get one connection in three, and at least one. */
const STRANGERS_SHARE = 3
/** How often to check for callers that have waited too long. */
const TICK_MS = 50
/** Maximum wait by the clock, however busy this process is. The pool has the same limit. */
const MAX_WAIT_MS = 10_000

interface Waiter {
  readonly request: EntryRequest
  readonly number: number
  /** By the clock of `idleMs`. */
  readonly patientUntilMs: number
  readonly waitsUntilMs: number
  readonly begin: () => void
  readonly giveUp: () => void
}

class EntryQueue {
  readonly #pool: ConnectionPool
  readonly #maxStrangers: number
  readonly #waiting: Readonly<Record<Standing, Waiter[]>> = { notifier: [], known: [], stranger: [] }
  #isNotifierIn = false
  /** The notifier is one of them. */
  #strangersIn = 0
  #lastNumber = 0
  #isAdmitting = false
  #ticking: NodeJS.Timeout | null = null
  /** The pace of the known callers. */
  readonly #pace = new QueuePace()
  /** When the known callers began to wait, by the clock of `idleMs`. */
  #startedMs = 0
  /** Calls since then. */
  #arrivals = 0

  constructor(pool: ConnectionPool) {
    this.#pool = pool
    this.#maxStrangers = Math.max(1, Math.floor(pool.counts.limit / STRANGERS_SHARE))
    pool.onRelease(() => this.#admitSoon())
  }

  get length(): number {
    const { notifier, known, stranger } = this.#waiting
    return notifier.length + known.length + stranger.length
  }

  get expectedWaitMs(): number {
    return this.#pace.expectedMs(this.#waiting.known.length)
  }

  noteArrival(): Arrivals {
    this.#arrivals += 1
    return { calls: this.#arrivals, idleMs: idleMs() - this.#startedMs }
  }

  /** Resolves when a connection is free. Calls `take` in the same step, so that no other caller gets the connection. */
  enter(request: EntryRequest, take: () => void): Promise<void> {
    if (this.#mayEnterAtOnce(request)) {
      this.#begin(request)
      take()
      return Promise.resolve()
    }
    return new Promise((resolve, reject) => {
      if (this.#waiting.known.length === 0) this.#start()
      this.#waiting[request.standing].push({
        request,
        number: (this.#lastNumber += 1),
        patientUntilMs: idleMs() + request.patienceMs,
        waitsUntilMs: performance.now() + MAX_WAIT_MS,
        begin: () => {
          take()
          resolve()
        },
        giveUp: () => reject(request.late()),
      })
      this.#admit()
      if (this.length > 0) this.#ticking ??= setInterval(() => this.#tick(), TICK_MS).unref()
    })
  }

  #start(): void {
    this.#pace.start()
    this.#startedMs = idleMs()
    this.#arrivals = 0
  }

  /** Call it when the first read is over and its connection is released or broken. */
  left({ standing }: EntryRequest): void {
    if (standing !== 'known') this.#strangersIn -= 1
    if (standing === 'notifier') this.#isNotifierIn = false
    this.#admitSoon()
  }

  #mayEnterAtOnce({ standing }: EntryRequest): boolean {
    return this.length === 0 && this.#hasSpareConnection() && this.#hasRoomFor(standing)
  }

  #hasRoomFor(standing: Standing): boolean {
    if (standing === 'known') return true
    return this.#strangersIn < this.#maxStrangers && !(standing === 'notifier' && this.#isNotifierIn)
  }

  #begin({ standing }: EntryRequest): void {
    if (standing !== 'known') this.#strangersIn += 1
    if (standing === 'notifier') this.#isNotifierIn = true
  }

  /** Admits after a `setImmediate`: callers whose first read is over ask for their next connection first. One shared read admits many. */
  #admitSoon(): void {
    if (this.#isAdmitting || this.length === 0) return
    this.#isAdmitting = true
    setImmediate(() => {
      this.#isAdmitting = false
      this.#admit()
    })
  }

  #admit(): void {
    while (this.#hasSpareConnection()) {
      const next = this.#takeNext()
      if (!next) return
      this.#begin(next.request)
      next.begin()
    }
  }

  /** A notifier, else the oldest of the others. Strangers only while their share lasts. */
  #takeNext(): Waiter | undefined {
    const { notifier, known, stranger } = this.#waiting
    if (notifier[0] && this.#hasRoomFor('notifier')) return notifier.shift()
    const isStrangerNext = stranger[0] && !(known[0] && known[0].number < stranger[0].number)
    if (isStrangerNext && this.#hasRoomFor('stranger')) return stranger.shift()
    const next = known.shift()
    if (next) this.#pace.began()
    return next
  }

  #hasSpareConnection(): boolean {
    const { limit, used, waiting } = this.#pool.counts
    return waiting === 0 && used < limit
  }

  #tick(): void {
    this.#admit()
    const [idle, now] = [idleMs(), performance.now()]
    this.#pace.sample(now, idle + ownCpuMs())
    for (const waiting of Object.values(this.#waiting)) {
      for (const waiter of waiting.splice(0)) {
        if (waiter.patientUntilMs <= idle || waiter.waitsUntilMs <= now) waiter.giveUp()
        else waiting.push(waiter)
      }
    }
    if (this.length === 0 && this.#ticking) {
      clearInterval(this.#ticking)
      this.#ticking = null
    }
  }
}

/**
 * How long this process has been idle since its start. A wait while it is busy with a burst is not caused by the database, so only a wait
 * in idle time counts.
 */
function idleMs(): number {
  return performance.eventLoopUtilization().idle
}

/** CPU time of this thread. It does not advance while a busy machine runs other processes. */
function ownCpuMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

const queues = new WeakMap<ConnectionPool, EntryQueue>()
