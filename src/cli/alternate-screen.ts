import { terminalWidth } from './terminal-width.ts'

const USUAL_ROWS = 24
/** The terminal's alternate screen, without a cursor; `LEAVE` restores what was there before. */
const ENTER = '\u001b[?1049h\u001b[?25l'
const LEAVE = '\u001b[?25h\u001b[?1049l'
const HOME = '\u001b[H'
const TO_END_OF_LINE = '\u001b[K'
const TO_END_OF_SCREEN = '\u001b[J'

/** Of a terminal, in characters. */
export interface ScreenSize {
  readonly columns: number
  readonly rows: number
}

export function screenSize(): ScreenSize {
  return { columns: terminalWidth(), rows: process.stdout.rows || USUAL_ROWS }
}

/** Drawn over the previous frame without clearing it, so that nothing flickers. The last line has no line end, which would scroll. */
export function drawFrame(lines: readonly string[]): void {
  process.stdout.write(`${HOME}${lines.map((line) => `${line}${TO_END_OF_LINE}`).join('\r\n')}${TO_END_OF_SCREEN}`)
}

export interface ScreenEvents {
  readonly onKeys: (keys: string) => void
  readonly onResize: () => void
  /** The process is asked to end, or the terminal is gone. */
  readonly onEnd: () => void
}

/** Takes over the whole terminal while the work runs, and then restores it. */
export async function onAlternateScreen(
  { onKeys, onResize, onEnd }: ScreenEvents,
  work: () => Promise<void>,
): Promise<void> {
  const { stdin, stdout, stderr } = process
  const onData = (keys: Buffer): void => onKeys(keys.toString('utf8'))
  stdout.write(ENTER)
  // Writing to a terminal that is gone fails, on standard error too; there is nobody left to show an error to.
  for (const stream of [stdin, stdout, stderr]) stream.on('error', onEnd)
  stdin.setRawMode(true).on('data', onData).once('end', onEnd)
  stdout.on('resize', onResize)
  for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, onEnd)
  try {
    await work()
  } finally {
    stdout.off('resize', onResize)
    stdin.off('data', onData).setRawMode(false).pause()
    stdout.write(LEAVE)
  }
}
