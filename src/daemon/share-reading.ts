/**
 * One reading for all callers: the one under way, or the last one where it began less than `freshMs` milliseconds ago. A failed
 * reading is shared like any other, so that a database in trouble is not asked more often.
 */
export function shareReading<T>(freshMs: number, read: () => Promise<T>): () => Promise<T> {
  let last: Promise<T> | null = null
  let isRunning = false
  let begunMs = 0
  return () => {
    if (last && (isRunning || performance.now() - begunMs < freshMs)) return last
    const begun = read()
    last = begun
    isRunning = true
    begunMs = performance.now()
    const end = (): void => void (isRunning = false)
    begun.then(end, end)
    return begun
  }
}
