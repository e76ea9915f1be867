import { setTimeout as delay } from 'node:timers/promises'
import type { Context } from '#context.ts'
import { isDatabaseBusy, isRetryable } from '#db/database-error.ts'
import { SECOND_MS } from '#shared/time.ts'
import type { AttemptResult } from './attempt-delivery.ts'
import { finishAttempts } from './finish-attempts.ts'
import { addTally, emptyTally, type Tally } from './tally.ts'

/** Maximum number of attempts per transaction, and of such transactions at once. */
const GROUP_SIZE = 200
const WRITERS = 2
/** Maximum wait of an attempt for its group. If the sender dies meanwhile, the event is sent again. */
const GATHER_MS = 100
/** Pause after an error of the database. */
const PAUSE_MS = SECOND_MS

/** Records attempts. Grouping them makes it cheap. */
export interface Recorder {
  /** Records an attempt soon. Drops it if recording still fails when its lease ends, by `performance.now`. */
  record(result: AttemptResult, leaseEndsMs: number): void
  /** Records an incomplete group. Call it when no running attempt could join the group. */
  flush(): void
  isIdle(): boolean
  /** The outcomes so far. */
  readonly tally: Readonly<Tally>
  /** Waits until everything is recorded. */
  stop(): Promise<void>
}

interface Ended {
  readonly result: AttemptResult
  readonly leaseEndsMs: number
}

/** `onEnd` is called when a writer has recorded everything. */
export function openRecorder(ctx: Context, onEnd: () => void): Recorder {
  const tally = emptyTally()
  const waiting: Ended[] = []
  /** Results whose recording failed. Its COMMIT may have taken place. */
  const doubted = new WeakSet<AttemptResult>()
  const writers = new Set<Promise<void>>()
  let gathering: NodeJS.Timeout | null = null
  /** Whether to record an incomplete group. */
  let isDue = false

  const writeGroup = async (group: readonly Ended[]): Promise<void> => {
    try {
      const results = group.map(({ result }) => result)
      addTally(tally, await finishAttempts(ctx, results, doubted))
    } catch (error) {
      ctx.log.error({ error, attempts: group.length }, 'delivery attempts cannot be recorded')
      if (isRetryable(error) || isDatabaseBusy(error)) {
        await delay(PAUSE_MS)
        // Another sender takes over an expired lease and sends again, with the same event id.
        const held = group.filter(({ leaseEndsMs }) => leaseEndsMs > performance.now())
        for (const { result } of held) doubted.add(result)
        waiting.push(...held)
        isDue = true
      } else if (group.length > 1) {
        // One attempt caused the error. The others are recorded without it, and its lease expires.
        for (const ended of group) await writeGroup([ended])
      }
    }
  }

  const writeAll = async (): Promise<void> => {
    while (waiting.length >= GROUP_SIZE || (isDue && waiting.length > 0)) {
      const group = waiting.splice(0, GROUP_SIZE)
      if (waiting.length === 0) endGathering()
      await writeGroup(group)
    }
  }

  const endGathering = (): void => {
    if (gathering) clearTimeout(gathering)
    gathering = null
    isDue = false
  }

  const startWriter = (): void => {
    if (writers.size >= WRITERS) return
    const writer = writeAll().finally(() => {
      writers.delete(writer)
      onEnd()
    })
    writers.add(writer)
  }

  const flush = (): void => {
    if (waiting.length === 0) return
    isDue = true
    startWriter()
  }

  return {
    tally,
    flush,
    record(result, leaseEndsMs) {
      waiting.push({ result, leaseEndsMs })
      gathering ??= setTimeout(flush, GATHER_MS)
      if (waiting.length >= GROUP_SIZE) startWriter()
    },
    isIdle: () => waiting.length + writers.size === 0,
    async stop() {
      flush()
      while (writers.size > 0) await Promise.all(writers)
    },
  }
}
