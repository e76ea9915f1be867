import { setTimeout as delay } from 'node:timers/promises'

const DEADLINE_MS = 150_000
const SHORTEST_POLL_MS = 5
const LONGEST_POLL_MS = 50

/**
 * Waits until the condition holds; throws after a time that is ample even on a slow, busy machine. The longer it has waited, the less often
 * it looks: each look takes time from what it waits for.
 */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const begunMs = performance.now()
  while (!(await condition())) {
    const waitedMs = performance.now() - begunMs
    if (waitedMs > DEADLINE_MS) throw new Error(`this did not become true: ${condition.toString()}`)
    await delay(Math.min(Math.max(waitedMs / 20, SHORTEST_POLL_MS), LONGEST_POLL_MS))
  }
}
