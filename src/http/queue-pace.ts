/** The window over which the pace is measured. */
const WINDOW_MS = 1000
/** A younger queue, by this thread's CPU and idle time, is a burst, whose pace is not known yet. */
const YOUNG_MS = 250
/** Longer pauses count as this long, because the queue may go on at its former pace afterwards. */
const STILL_MS = 300

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
      this.#moves.push({ ms: Math.min(nowMs - this.#movedMs, STILL_MS), begun: this.#begun })
      this.#movedMs = nowMs
      if (ownMs - this.#sinceMs >= YOUNG_MS) this.#msEach = this.#measure()
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
