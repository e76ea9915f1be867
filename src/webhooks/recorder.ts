import { setTimeout as delay } from 'node:timers/promises'
import type { Context } from '#context.ts'
import { isRetryable } from '#db/database-error.ts'
import { SECOND_MS } from '#shared/time.ts'
import type { AttemptResult } from './attempt-delivery.ts'
import { addTo, emptyTally, finishAttempts, type Tally } from './finish-attempts.ts'

/** Attempts recorded in one transaction, and how many such transactions run at once. */
const GROUP_SIZE = 50
const WRITERS = 2
/** How long it waits after the database failed. */
const PAUSE_MS = SECOND_MS

/** Records attempts in groups: while one group is written, the next gathers. */
export interface Recorder {
  /** An attempt that cannot be recorded before its lease ends, by `performance.now`, is forgotten. */
  record(result: AttemptResult, leaseEndsMs: number): void
  isIdle(): boolean
  /** What has become of the attempts so far. */
  readonly tally: Readonly<Tally>
  /** Waits until everything is recorded. */
  stop(): Promise<void>
}

interface Ended {
  readonly result: AttemptResult
  readonly leaseEndsMs: number
}

/** `onEnd` is called when everything that there was is recorded. */
export function openRecorder(ctx: Context, onEnd: () => void): Recorder {
  const tally = emptyTally()
  const waiting: Ended[] = []
  const writers = new Set<Promise<void>>()

  const writeGroup = async (group: readonly Ended[]): Promise<void> => {
    try {
      addTo(
        tally,
        await finishAttempts(
          ctx,
          group.map(({ result }) => result),
        ),
      )
    } catch (error) {
      ctx.log.error({ error, attempts: group.length }, 'delivery attempts cannot be recorded')
      if (isRetryable(error)) {
        await delay(PAUSE_MS)
        // Whoever takes over a lease that ran out sends again, and the receiver sees the same event id.
        waiting.push(...group.filter(({ leaseEndsMs }) => leaseEndsMs > performance.now()))
      } else if (group.length > 1) {
        // One of them caused it: the others must not wait for it. The lease of that one runs out.
        for (const ended of group) await writeGroup([ended])
      }
    }
  }

  const writeAll = async (): Promise<void> => {
    while (waiting.length > 0) await writeGroup(waiting.splice(0, GROUP_SIZE))
  }

  const startWriter = (): void => {
    const writer = writeAll().finally(() => {
      writers.delete(writer)
      onEnd()
    })
    writers.add(writer)
  }

  return {
    tally,
    record(result, leaseEndsMs) {
      waiting.push({ result, leaseEndsMs })
      // A second writer only for a whole group: groups are what makes recording cheap.
      if (writers.size === 0 || (writers.size < WRITERS && waiting.length >= GROUP_SIZE)) startWriter()
    },
    isIdle: () => waiting.length + writers.size === 0,
    async stop() {
      await Promise.all(writers)
    },
  }
}
