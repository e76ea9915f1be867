import { setTimeout as delay } from 'node:timers/promises'
import { isRetryable } from './database-error.ts'
import { CONNECT_TIMEOUT_MS, noteFailure, patienceLeftMs } from './patience.ts'

/** Long enough to find the next node of a cluster. */
const READ_AGAIN_MS = 2000
const FIRST_DELAY_MS = 5
/** On a cluster, callers that change one row conflict until one commits. Longer pauses would leave the row idle. */
const LONGEST_DELAY_MS = 400

/**
 * Runs work again from its first line while it fails with a retryable error. After `forMs` milliseconds it throws the last error instead of
 * beginning another attempt.
 */
export async function retrying<T>(
  work: (attempt: number) => Promise<T>,
  forMs: number,
  onRetry: () => void,
): Promise<T> {
  return retryUntil(work, performance.now() + forMs, onRetry)
}

/** Retries a read for 2 s after its first failure. The failure itself may take a node that is cut off several seconds. */
export async function readingAgain<T>(read: () => Promise<T>): Promise<T> {
  const beganMs = performance.now()
  try {
    return await read()
  } catch (error) {
    if (!isRetryable(error)) throw error
    noteFailure(beganMs)
    if (patienceLeftMs() < CONNECT_TIMEOUT_MS) throw error
    return retryUntil(read, performance.now() + READ_AGAIN_MS, () => undefined)
  }
}

async function retryUntil<T>(
  work: (attempt: number) => Promise<T>,
  deadlineMs: number,
  onRetry: () => void,
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    const beganMs = performance.now()
    try {
      return await work(attempt)
    } catch (error) {
      if (!isRetryable(error)) throw error
      noteFailure(beganMs)
      if (performance.now() >= deadlineMs || patienceLeftMs() < CONNECT_TIMEOUT_MS) throw error
      onRetry()
      await delay(Math.random() * Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 4 ** attempt))
    }
  }
}
