/**
 * A reading that all callers share: the one under way, or the last one while it is fresh. It is fresh if it began less than `freshMs`
 * milliseconds ago, or less than `rest` times its own duration ago. A failed reading is shared, too, so that a database in trouble is not
 * queried more often.
 */
export class CachedReading<T> {
  readonly #freshMs: number
  readonly #read: () => Promise<T>
  readonly #rest: number
  #last: Promise<T> | null = null
  #isRunning = false
  #begunMs = 0
  #freshForMs = 0

  constructor(freshMs: number, read: () => Promise<T>, rest = 0) {
    this.#freshMs = freshMs
    this.#read = read
    this.#rest = rest
  }

  get(): Promise<T> {
    if (this.#last && (this.#isRunning || performance.now() - this.#begunMs < this.#freshForMs)) return this.#last
    const begun = this.#read()
    this.#last = begun
    this.#isRunning = true
    this.#begunMs = performance.now()
    const end = (): void => this.#end()
    begun.then(end, end)
    return begun
  }

  #end(): void {
    this.#isRunning = false
    this.#freshForMs = Math.max(this.#freshMs, this.#rest * (performance.now() - this.#begunMs))
  }
}
