import { isReady, readClusterKind, type Ask, type ClusterKind } from './cluster.ts'
import type { Connection } from './connection.ts'
import { retryable } from './database-error.ts'
import { isCutOff, readGroupState } from './group-member.ts'

const LOCK_WAIT_SECONDS = 5
const SQL_MODE = 'STRICT_TRANS_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'

type Commanded = Pick<Connection, 'command'>

/** Newer MariaDB servers return the first variable as text. A reader of a cloud's cluster may have the second one alone. */
export const IS_READ_ONLY = "(CAST(@@GLOBAL.read_only AS CHAR) NOT IN ('0', 'OFF') OR @@GLOBAL.innodb_read_only = 1)"

/**
 * Makes every session the same, regardless of the server's defaults: READ COMMITTED, in UTC, strict about values, with a deadline for locks
 * and, unless `statementSeconds` is 0, for statements. Errors are in English, because only their text names a duplicate's key. On a cluster,
 * reads and transactions see every earlier commit of any node. Rejects if the server cannot be used, with a retryable error if it may be
 * usable later. A read-only server, or a group member without a majority, is refused only if there are others (`hasOthers`), because it
 * still answers reads. Returns the kind of the server's cluster.
 */
export function sessionOf(
  statementSeconds: number,
  hasOthers: boolean,
): (connection: Commanded) => Promise<ClusterKind> {
  return async (connection) => {
    const ask = askOver(connection)
    const kind = await readClusterKind(ask)
    for (const statement of sessionStatements(statementSeconds)) await ask(statement)
    const [session] = (await ask(SESSION)) as readonly SessionState[]
    if (session) refuseSession(session, hasOthers)
    if (kind === 'galera') {
      if (!(await isReady(ask))) throw retryable('WSREP: the node is cut off from the majority of its cluster', 1047)
      await ask('SET SESSION wsrep_sync_wait = 7')
    }
    if (kind === 'group' && hasOthers && (await isGroupCutOff(connection)))
      throw retryable('the member is cut off from the majority of its group', 3100)
    return kind
  }
}

/** Whether the server at the other end is known to be a member without a majority. */
export async function isGroupCutOff(connection: Commanded): Promise<boolean> {
  const group = await readGroupState(askOver(connection))
  return group !== null && isCutOff(group)
}

interface SessionState {
  readonly mode: string
  readonly charset: string
  readonly isReadOnly: number
}

const SESSION = `SELECT @@SESSION.sql_mode AS mode, @@SESSION.character_set_client AS charset, ${IS_READ_ONLY} AS isReadOnly`

function refuseSession({ mode, charset, isReadOnly }: SessionState, hasOthers: boolean): void {
  // The driver escapes lists with backslashes, in UTF-8.
  if (mode.includes('NO_BACKSLASH_ESCAPES'))
    throw new Error('the database server forces NO_BACKSLASH_ESCAPES in sql_mode: remove it')
  if (charset !== 'utf8mb4')
    throw new Error(
      `the database server reads statements as ${charset}, not utf8mb4: remove skip-character-set-client-handshake`,
    )
  if (hasOthers && isReadOnly !== 0) throw retryable('the server is read-only', 1290)
}

function askOver(connection: Commanded): Ask {
  return async (sql) => {
    const rows = await connection.command(sql)
    return Array.isArray(rows) ? (rows as unknown[]) : []
  }
}

/**
 * The deadline is in version comments, because MariaDB and MySQL name it differently. Asking for the version would cost a round trip.
 * MySQL's covers no change, and no wait for a table whose definition is about to change: without a deadline of its own, such a wait would
 * make the server look silent.
 */
function sessionStatements(statementSeconds: number): string[] {
  const ofMariadb = `max_statement_time = ${statementSeconds}`
  const ofMysql = `max_execution_time = ${statementSeconds * 1000}, lock_wait_timeout = ${LOCK_WAIT_SECONDS}`
  return [
    'SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED',
    `SET SESSION autocommit = 1, time_zone = '+00:00', lc_messages = 'en_US', sql_mode = '${SQL_MODE}', innodb_lock_wait_timeout = ${LOCK_WAIT_SECONDS} /*M! , ${ofMariadb} */ /*!50708 , ${ofMysql} */`,
  ]
}
