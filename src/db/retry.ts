import { setTimeout as delay } from 'node:timers/promises'
import { isRetryable } from './database-error.ts'

/** Longer than it takes to find the next node of a cluster. */
const READ_AGAIN_MS = 2000
const FIRST_DELAY_MS = 5
/** On a cluster, callers that want one row conflict until one of them commits: longer pauses would only leave the row idle. */
const LONGEST_DELAY_MS = 400

/**
 * Runs work again from its first line while it fails with an error that another try may not meet. No further try begins `forMs` after
 * the first one did; the last error is thrown.
 */
export async function retrying<T>(
  work: (attempt: number) => Promise<T>,
  forMs: number,
  onRetry: () => void,
): Promise<T> {
  return tryUntil(work, performance.now() + forMs, onRetry)
}

/** Makes a read again, for 2 s after it failed: a node that is cut off may keep it waiting for several seconds before. */
export async function readingAgain<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (error) {
    if (!isRetryable(error)) throw error
    return tryUntil(read, performance.now() + READ_AGAIN_MS, () => undefined)
  }
}

async function tryUntil<T>(work: (attempt: number) => Promise<T>, deadlineMs: number, onRetry: () => void): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work(attempt)
    } catch (error) {
      if (!isRetryable(error) || performance.now() >= deadlineMs) throw error
      onRetry()
      await delay(Math.random() * Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 4 ** attempt))
    }
  }
}
