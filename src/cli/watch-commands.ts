import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { drawFrame, onAlternateScreen, screenSize } from './alternate-screen.ts'
import { isTerminal } from './ask.ts'
import type { Commands } from './declaration.ts'
import { explainError } from './explain-error.ts'
import { withSandbox } from './session.ts'
import { UsageError } from './usage-error.ts'
import { drawFailure, drawWatch, type ShownReading } from './watch-screen.ts'

const EVERY_MS = 2000
/** Between the two readings of `--once`, which a rate needs. */
const RATE_MS = 1000
const CTRL_C = '\u0003'

/** `watch`: a live view of the service. */
export const commands: Commands = {
  watch: {
    options: [['--once', 'one reading, after a second in which requests are counted']],
    examples: ['watch', 'watch --once --json'],
    refuse(_args, { once: isOnce }: { once?: boolean }) {
      if (!isOnce && (!isTerminal() || !process.stdout.isTTY))
        throw new UsageError('watch needs a terminal; elsewhere use watch --once --json')
    },
    async run({ ctx, out }, _args, { once: isOnce }: { once?: boolean }) {
      const { Watch } = await import('#support/read-watch.ts')
      const watch = new Watch(ctx)
      const read = async (): Promise<ShownReading> => {
        const reading = await watch.read()
        return { ...reading, payments: await withSandbox(ctx, reading.payments) }
      }
      if (!isOnce) return watchUntilQuit(read)
      await read()
      await delay(RATE_MS)
      const reading = await read()
      out.result(reading, () => out.drawn(drawWatch(reading, { ...screenSize(), rows: Infinity }).join('\n')))
    },
  },
}

async function watchUntilQuit(read: () => Promise<ShownReading>): Promise<void> {
  const quit = new AbortController()
  const onEnd = (): void => quit.abort()
  const quitting = once(quit.signal, 'abort').then(() => null)
  let shown: ShownReading | null = null
  let failure: string | null = null
  const draw = (): void => {
    const size = screenSize()
    if (failure !== null) drawFrame(drawFailure(failure, shown, size))
    else if (shown) drawFrame(drawWatch(shown, size))
  }
  const onKeys = (keys: string): void => {
    if (/[qQ]/.test(keys) || keys.includes(CTRL_C)) quit.abort()
  }
  await onAlternateScreen({ onKeys, onResize: draw, onEnd }, async () => {
    while (!quit.signal.aborted) {
      try {
        // Quitting does not wait for a database that hangs.
        shown = (await Promise.race([read(), quitting])) ?? shown
        failure = null
      } catch (error) {
        failure = explainError(error)
      }
      draw()
      await delay(EVERY_MS, undefined, { signal: quit.signal }).catch(() => undefined)
    }
  })
}
