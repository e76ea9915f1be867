/** How fast the queue moved in so long a time is what counts. */
const WINDOW_MS = 1000
/** A queue that is younger, in time that was ours, is a burst: it may be gone in a moment, and nobody knows yet how fast it moves. */
const YOUNG_MS = 250
/** Of a time in which nothing moved, no more counts: whatever the queue waits for stood still, and may go on as before. */
const STILL_MS = 300

/** How long a newcomer to a queue would wait, by how fast the queue moved lately. */
export class QueuePace {
  /** When it was first looked at since it was empty, by our own time. */
  #sinceMs: number | null = null
  #movedMs = 0
  #begun = 0
  #moves: { readonly ms: number; readonly begun: number }[] = []
  /** For each that waits; 0 as long as it is not known. */
  #msEach = 0

  /** Somebody waits, and nobody did before: how fast those came who were served at once says nothing. */
  start(): void {
    this.#sinceMs = null
    this.#msEach = 0
  }

  /** One of those who wait has its turn. */
  began(): void {
    this.#begun += 1
  }

  /** To be called a few times in each window while anybody waits. `ownMs` does not run while a busy machine does something else. */
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

  /** How long one would wait behind so many; 0 as long as it is not known. */
  expectedMs(waiting: number): number {
    return waiting * this.#msEach
  }

  #measure(): number {
    const sum = (of: 'ms' | 'begun'): number => this.#moves.reduce((total, move) => total + move[of], 0)
    while (this.#moves.length > 1 && sum('ms') > WINDOW_MS) this.#moves.shift()
    return sum('ms') / sum('begun')
  }
}
