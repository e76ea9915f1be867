/**
 * The server, its sessions or the database are read-only (a secondary, a demoted primary), or it is in offline_mode. Another one may be
 * usable. With innodb_read_only, the table is read-only (1036) or, on MySQL, cannot be locked (1015).
 */
const UNUSABLE_ERRNO = new Set([1290, 1792, 1836, 3032, 3989, 1036, 1015])
/** The server does not know the command. A Galera node without a majority gives this answer to every command. */
const UNKNOWN_COMMAND = 1047
/** The server rolled the transaction back because of a conflict; 1412: because the table was changed. The last five are TiDB's. */
const CONFLICTS = [1213, 1205, 1020, 1180, 1412, 8002, 8005, 9007, 8022, 8028]
/** The statement (1317) or the connection was killed. */
const KILLED = [1317, 1053, 1927, 2006, 2013, 3169, 4031]
/** The server has no connection left, at all or for this user (1203, 1226); a proxy, such as MySQL Router, reaches no server. */
const NO_CONNECTION = [1040, 1203, 1226, 2003]
/** Group Replication could not certify the transaction. */
const GROUP_REFUSALS = [3100, 3101, 3797, 3798, 3799]
/** Errors after which the whole work runs again, whether or not it took place (DECISIONS 4). */
const RETRYABLE_ERRNO = new Set([...UNUSABLE_ERRNO, ...CONFLICTS, ...KILLED, ...NO_CONNECTION, ...GROUP_REFUSALS])
/** The statement exceeded the server's deadline, and would again: MySQL's number, and MariaDB's. */
const TOO_SLOW_ERRNO = new Set([3024, 1969])
const RETRYABLE_CODE = new Set([
  'PROTOCOL_CONNECTION_LOST',
  'ECONNRESET',
  'EPIPE',
  'ERR_STREAM_WRITE_AFTER_END',
  'ERR_STREAM_DESTROYED',
  'ECONNREFUSED',
  'ECONNABORTED',
  // The server accepts no connections, and the waiting ones fill the queue of its socket.
  'EAGAIN',
  // May pass: no route to the host, no answer from DNS, no socket, or no answer at all.
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EAI_AGAIN',
  'ENOENT',
  'ETIMEDOUT',
])
/** The server reached `max_prepared_stmt_count`, which all clients share, or has dropped this statement. It ran nothing. */
const NOT_PREPARED_ERRNO = new Set([1461, 1615, 1243])

/** COMMIT failed or got no answer: whether the transaction was committed is unknown. */
export class UnknownCommit extends Error {
  override readonly name = 'UnknownCommit'

  constructor(cause: unknown) {
    super('the answer to COMMIT was lost', { cause })
  }
}

/** Conflicts with another node of the cluster that a server finds at COMMIT: Galera's, and Group Replication's. */
const COMMIT_CONFLICTS = new Set([1213, 3101])

/** Whether COMMIT failed and certainly rolled the transaction back. */
export function isRolledBackAtCommit(error: unknown): boolean {
  return error instanceof UnknownCommit && COMMIT_CONFLICTS.has(detailsOf(error.cause).errno ?? 0)
}

/** Whether the whole work may succeed if it runs again from its first line. */
export function isRetryable(error: unknown): boolean {
  if (error instanceof UnknownCommit || isFromCutOffNode(error)) return true
  const { errno, code, isFatal } = detailsOf(error)
  if (errno !== undefined) return RETRYABLE_ERRNO.has(errno) || (code !== undefined && RETRYABLE_CODE.has(code))
  // The driver's error for a connection that was found closed has no code.
  return code === undefined ? isFatal : RETRYABLE_CODE.has(code)
}

/** Makes an error after which the whole work runs again, by default as after a deadlock. The log shows `errno`. */
export function retryable(message: string, errno = 1213): Error {
  return Object.assign(new Error(message), { errno })
}

/** A statement was killed, and its answer lacks a value that is always there. */
export function endedEarly(missing: string): Error {
  return retryable(`the server ended a statement before it had read ${missing}`, 1317)
}

/** Whether the server is unusable now. Another one of its cluster may be usable. */
export function isServerUnusable(error: unknown): boolean {
  return isFromCutOffNode(error) || UNUSABLE_ERRNO.has(detailsOf(error).errno ?? 0)
}

/** Whether a Galera node without a majority refused the command. */
function isFromCutOffNode(error: unknown): boolean {
  return error instanceof Error && error.message.includes('WSREP') && hasErrno(error, UNKNOWN_COMMAND)
}

/** Whether the server could not prepare the statement, and so ran nothing. */
export function isNotPrepared(error: unknown): boolean {
  return NOT_PREPARED_ERRNO.has(detailsOf(error).errno ?? 0)
}

/** Makes an error that `isRetryable` treats like a lost connection. */
export function timedOut(message: string): Error {
  return Object.assign(new Error(message), { code: 'ETIMEDOUT', fatal: true })
}

const UNRESPONSIVE = 'EUNRESPONSIVE'

/**
 * The server has been silent for longer than a statement may take. Retryable if there are other servers, because one of them may answer;
 * otherwise the caller has waited long enough.
 */
export function unresponsive(hasOthers: boolean): Error {
  const error = timedOut('the database server does not answer')
  return hasOthers ? error : Object.assign(error, { code: UNRESPONSIVE })
}

/** Whether the work failed because of the database, after all retries. */
export function isDatabaseBusy(error: unknown): boolean {
  if (error instanceof UnknownCommit) return true
  const { errno, code, isFatal } = detailsOf(error)
  if (TOO_SLOW_ERRNO.has(errno ?? 0) || code === UNRESPONSIVE) return true
  return isRetryable(error) && (isFatal || (errno !== undefined && errno > 0))
}

/** Whether it is the server's error with this number. */
export function hasErrno(error: unknown, errno: number): boolean {
  return detailsOf(error).errno === errno
}

/** The user may not do this to the table. */
const NOT_ALLOWED = 1142

/** Runs a statement that may be left out where the database's user may not run it. */
export async function unlessForbidden(statement: Promise<unknown>): Promise<void> {
  try {
    await statement
  } catch (error) {
    if (!hasErrno(error, NOT_ALLOWED)) throw error
  }
}

/** Whether a unique key refused a row (1062). It is the only error after which a transaction continues, without that statement. */
export function isAnyDuplicate(error: unknown): boolean {
  return hasErrno(error, 1062)
}

/** Whether the error is a duplicate on the named unique key. */
export function isDuplicate(error: unknown, key: string): boolean {
  // MariaDB names the key alone, MySQL 8 with its table: 'plans.plans_app_code'.
  return (
    isAnyDuplicate(error) && error instanceof Error && new RegExp(`for key '(\\w+\\.)?${key}'$`).test(error.message)
  )
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
