import { AsyncLocalStorage } from 'node:async_hooks'

/** Whoever waits for an answer, and since when the database has failed them. */
interface Caller {
  failedSinceMs: number | null
}

/** The longest time until a connection is open, or refused. */
export const CONNECT_TIMEOUT_MS = 3000

const callers = new AsyncLocalStorage<Caller>()

/** How long a call goes on trying after its first attempt at the database that failed began, all its reads and transactions together. */
const LONGEST_MS = 11_000
/** Work that goes on after a failover, and is quick. */
const LEAST_MS = 1000

/** Runs the work of one call, whose caller waits for the answer. Jobs have nobody who waits. */
export function forCaller<T>(work: () => T): T {
  return callers.run({ failedSinceMs: null }, work)
}

/** Call it when an attempt failed and may be repeated. */
export function noteFailure(beganMs: number): void {
  const caller = callers.getStore()
  if (caller) caller.failedSinceMs ??= beganMs
}

/** For how many milliseconds the caller goes on waiting for the database; Infinity while nothing has failed, and for jobs. */
export function patienceLeftMs(): number {
  const since = callers.getStore()?.failedSinceMs ?? null
  return since === null ? Infinity : since + LONGEST_MS - performance.now()
}

/** The longest wait for one answer. */
export function answerWithinMs(mostMs: number): number {
  return Math.min(mostMs, Math.max(LEAST_MS, patienceLeftMs()))
}
