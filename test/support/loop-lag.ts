import { processorMs } from './processor-time.ts'

/** How long the event loop of this thread was blocked, in milliseconds. */
export interface LoopLag {
  /** The longest so far. */
  longest(): number
  stop(): void
}

const STEP_MS = 10

/**
 * Watches how long this thread computes without a break. Time in which the thread had no processor does not count, because other
 * tests run at the same time.
 */
export function watchLoop(): LoopLag {
  let longest = 0
  let last = reading()
  const timer = setInterval(() => {
    const now = reading()
    const blocked = Math.min(now.wallMs - last.wallMs - STEP_MS, now.cpuMs - last.cpuMs)
    longest = Math.max(longest, blocked)
    last = now
  }, STEP_MS)
  return { longest: () => longest, stop: () => clearInterval(timer) }
}

function reading(): { wallMs: number; cpuMs: number } {
  return { wallMs: performance.now(), cpuMs: processorMs() }
}
