/** How long the event loop of this thread was held at a time, in milliseconds. */
export interface LoopLag {
  /** The longest so far. */
  longest(): number
  stop(): void
}

const STEP_MS = 10

/**
 * Watches how long this thread computes without a break. Time in which the machine gave the thread no processor does not count:
 * it is nobody's fault here, and other tests run beside.
 */
export function watchLoop(): LoopLag {
  let longest = 0
  let last = reading()
  const timer = setInterval(() => {
    const now = reading()
    const held = Math.min(now.wallMs - last.wallMs - STEP_MS, now.cpuMs - last.cpuMs)
    longest = Math.max(longest, held)
    last = now
  }, STEP_MS)
  return { longest: () => longest, stop: () => clearInterval(timer) }
}

function reading(): { wallMs: number; cpuMs: number } {
  const { user, system } = process.threadCpuUsage()
  return { wallMs: performance.now(), cpuMs: (user + system) / 1000 }
}
