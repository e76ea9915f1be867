import { setTimeout as delay } from 'node:timers/promises'

const DEADLINE_MS = 150_000
const POLL_MS = 5

/** Waits until the condition holds; throws after a time that is ample even on a slow, busy machine. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadlineMs = performance.now() + DEADLINE_MS
  while (!(await condition())) {
    if (performance.now() > deadlineMs) throw new Error(`this did not become true: ${condition.toString()}`)
    await delay(POLL_MS)
  }
}
