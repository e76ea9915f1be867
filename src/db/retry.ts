import { setTimeout as delay } from 'node:timers/promises'
import { isRetryable } from './database-error.ts'

/** Longer than it takes to find the next node of a cluster. */
const READ_AGAIN_MS = 2000
const FIRST_DELAY_MS = 5
/** On a cluster, callers that change one row conflict until one of them commits: longer pauses would only leave the row idle. */
const LONGEST_DELAY_MS = 400

/**
 * Runs work again from its first line while it fails with a retryable error. No attempt begins later than `forMs` milliseconds after
 * the first; then the last error is thrown.
 */
export async function retrying<T>(
  work: (attempt: number) => Promise<T>,
  forMs: number,
  onRetry: () => void,
): Promise<T> {
  return retryUntil(work, performance.now() + forMs, onRetry)
}

/** Retries a read for 2 s after its first failure, for which a node that is cut off may take several seconds. */
export async function readingAgain<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (error) {
    if (!isRetryable(error)) throw error
    return retryUntil(read, performance.now() + READ_AGAIN_MS, () => undefined)
  }
}

async function retryUntil<T>(
  work: (attempt: number) => Promise<T>,
  deadlineMs: number,
  onRetry: () => void,
): Promise<T> {
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
