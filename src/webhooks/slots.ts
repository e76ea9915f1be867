/** Maximum number of young attempts, over all apps. */
const MAX_YOUNG = 128
/** Slots reserved for apps without an open attempt, so that prompt receivers do not wait for slow ones. */
const RESERVED_SLOTS = 16
/** Maximum number of open attempts, over all apps, because each holds a socket. */
const MAX_OPEN = 2048
/** An attempt that is open longer frees its slot for other apps, and still counts against its own. */
const STALL_MS = 1000
const INITIAL_CONCURRENCY = 4
const MAX_CONCURRENCY = 64
const MIN_CONCURRENCY = 1
/** Rounds of events held ready for a receiver that uses its whole limit. A claim takes as long as several such rounds. */
const ROUNDS_AHEAD = 8

/** A begun attempt. */
export interface Slot {
  readonly appId: number
  readonly startedMs: number
  isYoung: boolean
}

interface AppLimit {
  concurrency: number
  open: number
  stalled: number
}

/**
 * Limits how many attempts run at once, so that no receiver delays another's deliveries. Each app has a concurrency limit, which grows
 * while its receiver answers promptly and drops to one attempt at a time when it does not answer at all. Attempts that are open for more
 * than a second stop counting against other apps: a hanging receiver occupies sockets, but no slots.
 */
export class Slots {
  readonly #nowMs: () => number
  readonly #limits = new Map<number, AppLimit>()
  readonly #young = new Set<Slot>()
  #open = 0

  /** `nowMs` is a monotonic clock. */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  /** How many attempts the app may begin now. */
  capacity(appId: number): number {
    this.#ageYoung()
    const limit = this.#limitOf(appId)
    const slots = limit.open === 0 ? MAX_YOUNG : MAX_YOUNG - RESERVED_SLOTS
    return Math.max(0, Math.min(limit.concurrency - limit.open, slots - this.#young.size, MAX_OPEN - this.#open))
  }

  /**
   * How many events of the app are worth claiming in advance: those that could begin if all slots were free, plus the rounds after them:
   * none for a slow receiver, several for a fast one, otherwise one.
   */
  depth(appId: number): number {
    const limit = this.#limitOf(appId)
    return Math.max(0, limit.concurrency - limit.open) + limit.concurrency * roundsAhead(limit)
  }

  begin(appId: number): Slot {
    const slot = { appId, startedMs: this.#nowMs(), isYoung: true }
    this.#young.add(slot)
    this.#limitOf(appId).open += 1
    this.#open += 1
    return slot
  }

  /** `hung`: the receiver gave no answer in time. */
  end(slot: Slot, hung: boolean): void {
    this.#ageYoung()
    const limit = this.#limitOf(slot.appId)
    limit.open -= 1
    this.#open -= 1
    if (slot.isYoung) {
      this.#young.delete(slot)
      limit.concurrency = Math.min(MAX_CONCURRENCY, limit.concurrency + 1)
    } else {
      limit.stalled -= 1
    }
    if (hung) limit.concurrency = MIN_CONCURRENCY
  }

  #limitOf(appId: number): AppLimit {
    const limit = this.#limits.get(appId) ?? { concurrency: INITIAL_CONCURRENCY, open: 0, stalled: 0 }
    this.#limits.set(appId, limit)
    return limit
  }

  #ageYoung(): void {
    const oldest = this.#nowMs() - STALL_MS
    // Ordered by start time, so the first young one ends the search.
    for (const slot of this.#young) {
      if (slot.startedMs > oldest) return
      this.#young.delete(slot)
      slot.isYoung = false
      const limit = this.#limitOf(slot.appId)
      limit.stalled += 1
      limit.concurrency = Math.min(limit.concurrency, INITIAL_CONCURRENCY)
    }
  }
}

function roundsAhead({ stalled, concurrency }: AppLimit): number {
  if (stalled > 0 || concurrency < INITIAL_CONCURRENCY) return 0
  return concurrency < MAX_CONCURRENCY ? 1 : ROUNDS_AHEAD
}
