/** The window over which the pace is measured. */
const WINDOW_MS = 1000
/** The pace of a younger queue is not known yet: it may be a burst. Measured in this thread's own time, which is CPU and idle time. */
const MIN_AGE_MS = 250
/** A longer pause counts as this long, because the queue may go on at its former pace afterwards. */
const MAX_PAUSE_MS = 300

/** Estimates how long a new caller would wait, by the pace of the queue. */
export class QueuePace {
  /** When the queue was first sampled since it was empty, by this thread's own time. */
  #sinceMs: number | null = null
  #movedMs = 0
  #begun = 0
  #moves: { readonly ms: number; readonly begun: number }[] = []
  /** Milliseconds per waiting caller; 0 while unknown. */
  #msEach = 0

  /** Call it when a caller enters an empty queue: the former pace no longer applies. */
  start(): void {
    this.#sinceMs = null
    this.#msEach = 0
  }

  /** Call it when a waiting caller begins. */
  began(): void {
    this.#begun += 1
  }

  /** Call it several times per window while anybody waits. `ownMs` does not advance while a busy machine runs other processes. */
  sample(nowMs: number, ownMs: number): void {
    if (this.#sinceMs === null) {
      this.#sinceMs = ownMs
      this.#movedMs = nowMs
      this.#moves = []
    } else if (this.#begun > 0) {
      this.#moves.push({ ms: Math.min(nowMs - this.#movedMs, MAX_PAUSE_MS), begun: this.#begun })
      this.#movedMs = nowMs
      if (ownMs - this.#sinceMs >= MIN_AGE_MS) this.#msEach = this.#measure()
    }
    this.#begun = 0
  }

  /** Estimates the wait behind this many callers; 0 while unknown. */
  expectedMs(waiting: number): number {
    return waiting * this.#msEach
  }

  #measure(): number {
    const sum = (of: 'ms' | 'begun'): number => this.#moves.reduce((total, move) => total + move[of], 0)
    while (this.#moves.length > 1 && sum('ms') > WINDOW_MS) this.#moves.shift()
    return sum('ms') / sum('begun')
  }
}
