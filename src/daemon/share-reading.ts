/**
 * Shares one reading among all callers: the one under way, or the last one while it is fresh. It is fresh if it began less than `freshMs`
 * milliseconds ago, or less than `rest` times its own duration ago. A failed reading is shared, too, so that a database in trouble is not
 * queried more often.
 */
export function shareReading<T>(freshMs: number, read: () => Promise<T>, rest = 0): () => Promise<T> {
  let last: Promise<T> | null = null
  let isRunning = false
  let begunMs = 0
  let freshForMs = freshMs
  return () => {
    if (last && (isRunning || performance.now() - begunMs < freshForMs)) return last
    const begun = read()
    last = begun
    isRunning = true
    begunMs = performance.now()
    const end = (): void => {
      isRunning = false
      freshForMs = Math.max(freshMs, rest * (performance.now() - begunMs))
    }
    begun.then(end, end)
    return begun
  }
}
