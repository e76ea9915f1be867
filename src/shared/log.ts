import { pino, type Logger } from 'pino'

export type { Logger }
export type LogLevel = 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent'

/**
 * JSON lines on standard output, written synchronously: no line is lost in a crash, and worker threads need no relay.
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
    pino.destination({ fd: 1, sync: true }),
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
