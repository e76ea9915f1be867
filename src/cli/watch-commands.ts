import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { isTerminal } from './ask.ts'
import type { Commands } from './declaration.ts'
import { explainError } from './explain-error.ts'
import { withSandbox } from './session.ts'
import { terminalWidth } from './terminal-width.ts'
import { UsageError } from './usage-error.ts'
import { drawFailure, drawWatch, type ShownReading } from './watch-screen.ts'

const EVERY_MS = 2000
/** Between the two readings of `--once`, which a rate needs. */
const RATE_MS = 1000
const USUAL_ROWS = 24
const CTRL_C = '\u0003'
/** The terminal's alternate screen, without a cursor; `LEAVE` restores what was there before. */
const ENTER = '\u001b[?1049h\u001b[?25l'
const LEAVE = '\u001b[?25h\u001b[?1049l'
const HOME = '\u001b[H'
const TO_END_OF_LINE = '\u001b[K'
const TO_END_OF_SCREEN = '\u001b[J'

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
      const { openWatch } = await import('#support/read-watch.ts')
      const readService = openWatch(ctx)
      const read = async (): Promise<ShownReading> => {
        const reading = await readService()
        return { ...reading, payments: await withSandbox(ctx, reading.payments) }
      }
      if (!isOnce) return watchUntilQuit(read)
      await read()
      await delay(RATE_MS)
      const reading = await read()
      out.result(reading, () => out.drawn(drawWatch(reading, sizeOf(Infinity)).join('\n')))
    },
  },
}

function sizeOf(rows: number): { columns: number; rows: number } {
  return { columns: terminalWidth(), rows }
}

async function watchUntilQuit(read: () => Promise<ShownReading>): Promise<void> {
  const { stdin, stdout } = process
  const quit = new AbortController()
  const onKey = (keys: Buffer | string): void => {
    if (/[qQ]/.test(String(keys)) || String(keys).includes(CTRL_C)) quit.abort()
  }
  const quitting = once(quit.signal, 'abort').then(() => null)
  let shown: ShownReading | null = null
  let failure: string | null = null
  const draw = (): void => {
    const size = sizeOf(stdout.rows || USUAL_ROWS)
    if (failure !== null) stdout.write(frameOf(drawFailure(failure, shown, size)))
    else if (shown) stdout.write(frameOf(drawWatch(shown, size)))
  }
  stdout.write(ENTER)
  stdin.setRawMode(true).on('data', onKey)
  stdout.on('resize', draw)
  process.once('SIGTERM', () => quit.abort())
  try {
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
  } finally {
    stdout.off('resize', draw)
    stdin.off('data', onKey).setRawMode(false).pause()
    stdout.write(LEAVE)
  }
}

/** Drawn over the previous frame without clearing it, so that nothing flickers. The last line has no line end, which would scroll. */
function frameOf(lines: readonly string[]): string {
  return `${HOME}${lines.map((line) => `${line}${TO_END_OF_LINE}`).join('\r\n')}${TO_END_OF_SCREEN}`
}
