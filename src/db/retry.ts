import { setTimeout as delay } from 'node:timers/promises'
import { isRetryable } from './database-error.ts'
import { CONNECT_TIMEOUT_MS, noteFailure, patienceLeftMs } from './patience.ts'

/** Long enough to find the next node of a cluster. */
const READ_AGAIN_MS = 2000
const FIRST_DELAY_MS = 5
/** On a cluster, callers that change one row conflict until one commits. Longer pauses would leave the row idle. */
const MAX_DELAY_MS = 400

/**
 * Runs work again from its first line while it fails with a retryable error. After `forMs` milliseconds it throws the last error instead of
 * beginning another attempt.
 */
export async function retrying<T>(
  work: (attempt: number) => Promise<T>,
  forMs: number,
  onRetry: () => void,
): Promise<T> {
  const deadlineMs = performance.now() + forMs
  for (let attempt = 1; ; attempt += 1) {
    const beganMs = performance.now()
    try {
      return await work(attempt)
    } catch (error) {
      throwUnlessRetryable(error, beganMs)
      if (performance.now() >= deadlineMs) throw error
      onRetry()
      await delay(Math.random() * Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 4 ** attempt))
    }
  }
}

/** Retries a read for 2 s after its first failure. On a node that is cut off, that failure may itself take several seconds. */
export async function readingAgain<T>(read: () => Promise<T>): Promise<T> {
  const beganMs = performance.now()
  try {
    return await read()
  } catch (error) {
    throwUnlessRetryable(error, beganMs)
    return retrying(read, READ_AGAIN_MS, () => undefined)
  }
}

/** Records a failed attempt; throws its error if another attempt cannot succeed, or the caller has no patience for one. */
function throwUnlessRetryable(error: unknown, beganMs: number): void {
  if (!isRetryable(error)) throw error
  noteFailure(beganMs)
  if (patienceLeftMs() < CONNECT_TIMEOUT_MS) throw error
}
