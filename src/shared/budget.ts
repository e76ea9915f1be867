import { startDeadline } from './time.ts'

/** A running time limit: returns the milliseconds left, at least 1, as timers need it. */
export type Budget = () => number

export function openBudget(ms: number): Budget {
  const endMs = performance.now() + ms
  return () => Math.max(1, Math.round(endMs - performance.now()))
}

/** The promise's outcome. Throws `late` if there is none after `ms` milliseconds; a later outcome is ignored. */
export async function withTimeout<T>(promise: Promise<T>, ms: number, late: Error): Promise<T> {
  let cancel = (): void => undefined
  const deadline = new Promise<never>((_, reject) => {
    cancel = startDeadline(ms, () => reject(late))
  })
  try {
    return await Promise.race([promise, deadline])
  } finally {
    cancel()
  }
}
