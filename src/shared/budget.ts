/** A time limit that has begun: tells the milliseconds left, at least 1, so that they can be given to a timer. */
export type Budget = () => number

export function openBudget(ms: number): Budget {
  const endMs = performance.now() + ms
  return () => Math.max(1, Math.round(endMs - performance.now()))
}

/** The promise's value if it comes within `ms`; throws `late` otherwise, and lets what comes afterwards be. */
export async function within<T>(promise: Promise<T>, ms: number, late: Error): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const lateness = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(late), ms)
  })
  try {
    return await Promise.race([promise, lateness])
  } finally {
    clearTimeout(timer)
  }
}
