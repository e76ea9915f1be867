import { pino, type DestinationStream, type Logger } from 'pino'

export type { Logger }
export type LogLevel = 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent'

/** How long a line below `warn` may wait for others that are written with it. */
const MAX_WAIT_MS = 20
/** A pipe takes this much in one piece, so that lines of several threads do not mix. */
const MAX_BYTES = 4096
/** Characters that wait for a disk that is full; beyond them, lines are dropped. */
const MAX_UNWRITTEN = 1_000_000
const WARN = pino.levels.values['warn'] ?? 40

/**
 * JSON lines on standard output; worker threads need no relay. Each write wakes the reader too, so lines that nobody is waiting for are
 * written together. A warning or an error is written at once, after all lines before it, and so is everything at `log.flush()` and when
 * the thread ends: only one that is killed or terminated loses lines, those of its last 20 ms. If the reader has gone or the disk is full,
 * lines are lost and the work goes on (R288).
 * Callers name the fields that they log one by one. Never log a whole request, row, body or header.
 */
export function openLog(level: LogLevel, bindings: Record<string, string> = {}): Logger {
  return pino(
    {
      level,
      base: bindings,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { error: describeError, err: describeError },
    },
    (output ??= batchedOutput()),
  )
}

/**
 * The fields of an error that may be logged: not the statement and its parameters, which a database error carries. An error from
 * another thread may be a plain object.
 */
export function describeError(error: unknown): Record<string, unknown> {
  const { name, message, code, errno, stack, cause } = (error ?? {}) as Partial<
    Record<keyof Error | 'code' | 'errno', unknown>
  >
  if (typeof message !== 'string')
    return { message: error === null || typeof error !== 'object' ? String(error) : 'an object that is no error' }
  return {
    name,
    message,
    ...(code === undefined ? {} : { code }),
    ...(errno === undefined ? {} : { errno }),
    stack,
    ...(cause instanceof Error ? { cause: describeError(cause) } : {}),
  }
}

/** Where pino writes. It sets `lastLevel` before each line. */
interface Output extends DestinationStream {
  lastLevel: number
}

/** One for the whole thread. */
let output: Output | null = null

function batchedOutput(): Output {
  // Not its `flushSync`, which repeats a failed write forever, and with it the thread would stand still.
  const destination = pino.destination({ fd: 1, sync: true, maxLength: MAX_UNWRITTEN })
  // pino itself gives up when the reader is gone (EPIPE). Lines that a full disk does not take are written later, or dropped.
  destination.on('error', () => undefined)
  let lines = ''
  let timer: NodeJS.Timeout | null = null
  const flush = (): void => {
    if (timer) clearTimeout(timer)
    timer = null
    if (lines !== '') destination.write(lines)
    lines = ''
  }
  process.on('exit', flush)
  const made = {
    // Has pino set `lastLevel`.
    [Symbol.for('pino.metadata')]: true,
    lastLevel: 0,
    /** For `log.flush()`. */
    flush,
    write(line: string) {
      if (Buffer.byteLength(lines) + Buffer.byteLength(line) > MAX_BYTES) flush()
      lines += line
      if (made.lastLevel >= WARN) flush()
      else timer ??= setTimeout(flush, MAX_WAIT_MS).unref()
    },
  }
  return made
}
