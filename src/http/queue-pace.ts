/** The pace is measured over this time. */
const WINDOW_MS = 1000
/** A younger queue, by our own time, is a burst: it may be gone in a moment, and its pace is not known yet. */
const YOUNG_MS = 250
/** A longer pause without movement counts as this long: what the queue waits for may go on as before. */
const STILL_MS = 300

/** Estimates how long a newcomer to a queue would wait, by the pace of the queue. */
export class QueuePace {
  /** When it was first sampled since it was empty, by our own time. */
  #sinceMs: number | null = null
  #movedMs = 0
  #begun = 0
  #moves: { readonly ms: number; readonly begun: number }[] = []
  /** Per waiting caller; 0 while unknown. */
  #msEach = 0

  /** The queue was empty and somebody waits now: the pace of before does not apply. */
  start(): void {
    this.#sinceMs = null
    this.#msEach = 0
  }

  /** A waiting caller begins. */
  began(): void {
    this.#begun += 1
  }

  /** To be called several times in each window while anybody waits. `ownMs` does not advance while a busy machine runs other processes. */
  look(nowMs: number, ownMs: number): void {
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

  /** How long a caller would wait behind so many others; 0 while unknown. */
  expectedMs(waiting: number): number {
    return waiting * this.#msEach
  }

  #measure(): number {
    const sum = (of: 'ms' | 'begun'): number => this.#moves.reduce((total, move) => total + move[of], 0)
    while (this.#moves.length > 1 && sum('ms') > WINDOW_MS) this.#moves.shift()
    return sum('ms') / sum('begun')
  }
}
