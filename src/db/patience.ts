import { AsyncLocalStorage } from 'node:async_hooks'

/** A call whose caller waits for the answer: since when its attempts at the database have failed, by `performance.now`. */
interface Caller {
  failedSinceMs: number | null
}

const callers = new AsyncLocalStorage<Caller>()

/** Maximum time until a connection is open or refused. */
export const CONNECT_TIMEOUT_MS = 3000
/** How long a call keeps trying, across all its reads and transactions, from the start of its first failed attempt at the database. */
const MAX_TRYING_MS = 11_000
/** Every answer gets this long, so that quick work after a failover still succeeds. */
const MIN_ANSWER_MS = 1000

/** Runs the work of one call, whose caller waits for the answer. Jobs have no such caller. */
export function forCaller<T>(work: () => T): T {
  return callers.run({ failedSinceMs: null }, work)
}

/** Records that an attempt of the call that began at `beganMs` has failed. */
export function noteFailure(beganMs: number): void {
  const caller = callers.getStore()
  if (caller) caller.failedSinceMs ??= beganMs
}

/** How many more milliseconds the caller waits for the database; Infinity while nothing has failed, and for jobs. */
export function patienceLeftMs(): number {
  const since = callers.getStore()?.failedSinceMs ?? null
  return since === null ? Infinity : since + MAX_TRYING_MS - performance.now()
}

/** The longest wait for one answer. */
export function answerWithinMs(mostMs: number): number {
  return Math.min(mostMs, Math.max(MIN_ANSWER_MS, patienceLeftMs()))
}
