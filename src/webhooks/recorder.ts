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

interface Waiting {
  readonly result: AttemptResult
  readonly leaseEndsMs: number
  /** Whether recording it failed before. Its COMMIT may have taken place. */
  readonly isDoubted: boolean
}

/** Records attempts. Grouping them makes it cheap. */
export class Recorder {
  readonly #ctx: Context
  readonly #onEnd: () => void
  readonly #tally = emptyTally()
  readonly #waiting: Waiting[] = []
  readonly #writers = new Set<Promise<void>>()
  #gathering: NodeJS.Timeout | null = null
  /** Whether to record an incomplete group. */
  #isDue = false

  /** `onEnd` is called when a writer has recorded everything. */
  constructor(ctx: Context, onEnd: () => void) {
    this.#ctx = ctx
    this.#onEnd = onEnd
  }

  /** The outcomes so far. */
  get tally(): Readonly<Tally> {
    return this.#tally
  }

  /** Records an attempt soon. Drops it if recording still fails when its lease ends, by `performance.now`. */
  record(result: AttemptResult, leaseEndsMs: number): void {
    this.#waiting.push({ result, leaseEndsMs, isDoubted: false })
    this.#gathering ??= setTimeout(() => this.flush(), GATHER_MS)
    if (this.#waiting.length >= GROUP_SIZE) this.#startWriter()
  }

  /** Records an incomplete group. Call it when no running attempt could join the group. */
  flush(): void {
    if (this.#waiting.length === 0) return
    this.#isDue = true
    this.#startWriter()
  }

  isIdle(): boolean {
    return this.#waiting.length + this.#writers.size === 0
  }

  /** Waits until everything is recorded. */
  async drain(): Promise<void> {
    this.flush()
    while (this.#writers.size > 0) await Promise.all(this.#writers)
  }

  #startWriter(): void {
    if (this.#writers.size >= WRITERS) return
    const writer = this.#writeAll().finally(() => {
      this.#writers.delete(writer)
      this.#onEnd()
    })
    this.#writers.add(writer)
  }

  async #writeAll(): Promise<void> {
    while (this.#waiting.length >= GROUP_SIZE || (this.#isDue && this.#waiting.length > 0)) {
      const group = this.#waiting.splice(0, GROUP_SIZE)
      if (this.#waiting.length === 0) this.#endGathering()
      await this.#writeGroup(group)
    }
  }

  #endGathering(): void {
    if (this.#gathering) clearTimeout(this.#gathering)
    this.#gathering = null
    this.#isDue = false
  }

  async #writeGroup(group: readonly Waiting[]): Promise<void> {
    const { fresh = [], doubted = [] } = Object.groupBy(group, ({ isDoubted }) => (isDoubted ? 'doubted' : 'fresh'))
    try {
      addTally(this.#tally, await finishAttempts(this.#ctx, resultsOf(fresh), resultsOf(doubted)))
    } catch (error) {
      this.#ctx.log.error({ error, attempts: group.length }, 'delivery attempts cannot be recorded')
      if (isRetryable(error) || isDatabaseBusy(error)) {
        await delay(PAUSE_MS)
        // Another sender takes over an expired lease and sends again, with the same event id.
        const held = group.filter(({ leaseEndsMs }) => leaseEndsMs > performance.now())
        this.#waiting.push(...held.map((ended) => ({ ...ended, isDoubted: true })))
        this.#isDue = true
      } else if (group.length > 1) {
        // One attempt caused the error. The others are recorded without it, and its lease expires.
        for (const ended of group) await this.#writeGroup([ended])
      }
    }
  }
}

function resultsOf(group: readonly Waiting[]): AttemptResult[] {
  return group.map(({ result }) => result)
}
