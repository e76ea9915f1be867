/** A node without a majority, or a read-only server, such as the secondaries of a cluster. Another server may be usable. */
const UNUSABLE_ERRNO = new Set([1047, 1290, 1836])
/** Errors after which the whole work is run again, whether or not it took place (DECISIONS 4). */
const RETRYABLE_ERRNO = new Set([
  ...UNUSABLE_ERRNO,
  // Conflicts, the last five of TiDB; 1412: the table was changed meanwhile.
  1213,
  1205,
  1020,
  1180,
  3100,
  3101,
  1412,
  8002,
  8005,
  9007,
  8022,
  8028,
  // The server is going away or the connection was killed.
  1053,
  1927,
  2006,
  2013,
  4031,
])
const RETRYABLE_CODE = new Set([
  'PROTOCOL_CONNECTION_LOST',
  'ECONNRESET',
  'EPIPE',
  'ECONNREFUSED',
  'ENOENT',
  'ETIMEDOUT',
])

/** Whether the whole work may succeed when it is run again from its first line. */
export function isRetryable(error: unknown): boolean {
  const { errno, code, isFatal } = detailsOf(error)
  if (errno !== undefined) return RETRYABLE_ERRNO.has(errno) || (code !== undefined && RETRYABLE_CODE.has(code))
  // The driver's error for a connection that was found closed has no code.
  return code === undefined ? isFatal : RETRYABLE_CODE.has(code)
}

/** An error after which the whole work is run again, as after a deadlock. */
export function retryable(message: string, errno = 1213): Error {
  return Object.assign(new Error(message), { errno })
}

/** Whether the server is unusable now, while another one of its cluster may be usable. */
export function isServerUnusable(error: unknown): boolean {
  return UNUSABLE_ERRNO.has(detailsOf(error).errno ?? 0)
}

/** Whether the work failed because of the database, after all retries. */
export function isDatabaseBusy(error: unknown): boolean {
  if (!isRetryable(error)) return false
  const { errno, isFatal } = detailsOf(error)
  return isFatal || (errno !== undefined && errno > 0)
}

/** Whether the error is a duplicate (1062) on the named unique key. */
export function isDuplicate(error: unknown, key: string): boolean {
  const { errno } = detailsOf(error)
  // MariaDB names the key alone, MySQL 8 with its table: 'plans.plans_app_code'.
  return errno === 1062 && error instanceof Error && new RegExp(`for key '(\\w+\\.)?${key}'$`).test(error.message)
}

/** Runs an insert; a duplicate on `key` becomes the error that `translate` makes. */
export async function onDuplicate<T>(key: string, insert: Promise<T>, translate: () => Error): Promise<T> {
  try {
    return await insert
  } catch (error) {
    throw isDuplicate(error, key) ? translate() : error
  }
}

/** Runs an insert; null if the row exists. A duplicate on `key` rolls back only that statement. */
export async function unlessDuplicate<T>(key: string, insert: Promise<T>): Promise<T | null> {
  try {
    return await insert
  } catch (error) {
    if (isDuplicate(error, key)) return null
    throw error
  }
}

/** Runs an insert; returns whether the row is new. A duplicate on `key` rolls back only that statement. */
export async function insertedNew(key: string, insert: Promise<unknown>): Promise<boolean> {
  return (
    (await unlessDuplicate(
      key,
      insert.then(() => true),
    )) ?? false
  )
}

function detailsOf(error: unknown): { errno?: number; code?: string; isFatal: boolean } {
  if (typeof error !== 'object' || error === null) return { isFatal: false }
  const { errno, code, fatal } = error as { errno?: unknown; code?: unknown; fatal?: unknown }
  return {
    isFatal: fatal === true,
    ...(typeof errno === 'number' ? { errno } : {}),
    ...(typeof code === 'string' ? { code } : {}),
  }
}
