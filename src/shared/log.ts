import { pino, type Logger } from 'pino'

export type { Logger }
export type LogLevel = 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent'

/**
 * JSON lines on standard output, written synchronously, so that a line is out before a crash and worker threads need no relay.
 * Callers name the fields that they log, one by one; no request, row, body or header goes in whole.
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
    pino.destination({ fd: 1, sync: true }),
  )
}

/** What a log may say of an error: never the statement and its parameters, which a database error carries. */
export function describeError(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { message: String(error) }
  const { code, errno } = error as { code?: unknown; errno?: unknown }
  return {
    name: error.name,
    message: error.message,
    ...(code === undefined ? {} : { code }),
    ...(errno === undefined ? {} : { errno }),
    stack: error.stack,
    ...(error.cause instanceof Error ? { cause: describeError(error.cause) } : {}),
  }
}
