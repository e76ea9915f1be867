import type { QueryRunner } from 'typeorm'
import type { PoolConnection } from 'mysql2'
import { isClusterNode, isReady, type Ask } from './cluster.ts'
import type { Connection } from './connection.ts'
import { retryable } from './database-error.ts'
import type { BeginSession } from './servers.ts'

const LOCK_WAIT_SECONDS = 5
const METADATA_LOCK_WAIT_SECONDS = 30
const SQL_MODE = 'STRICT_TRANS_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'

/** Newer MariaDB servers give the variable as text. */
export const IS_READ_ONLY = "CAST(@@GLOBAL.read_only AS CHAR) NOT IN ('0', 'OFF')"

/**
 * Makes every session the same, whatever the server's defaults are: READ COMMITTED, in UTC, strict about values, with a deadline for a
 * lock and for a statement. On a cluster, what was committed at any node before a read or a transaction begins is seen. Rejects if the
 * server cannot be used: with an error that is retried if it may be usable later, and, if there are others (`hasOthers`), if it is
 * read-only.
 */
export function sessionOf(statementSeconds: number, hasOthers: boolean): BeginSession {
  return async (connection) => {
    const ask = askOver(connection)
    const isNode = await isClusterNode(ask)
    for (const statement of sessionStatements(statementSeconds)) await ask(statement)
    const [session] = (await ask(SESSION)) as readonly SessionState[]
    if (session) refuseSession(session, hasOthers)
    if (!isNode) return
    if (!(await isReady(ask))) throw retryable('WSREP: the node is cut off from the majority of its cluster', 1047)
    await ask('SET SESSION wsrep_sync_wait = 7')
  }
}

interface SessionState {
  readonly mode: string
  readonly charset: string
  readonly isReadOnly: number
}

const SESSION = `SELECT @@SESSION.sql_mode AS mode, @@SESSION.character_set_client AS charset, ${IS_READ_ONLY} AS isReadOnly`

function refuseSession({ mode, charset, isReadOnly }: SessionState, hasOthers: boolean): void {
  // The driver writes lists into the text of statements with backslashes, in UTF-8.
  if (mode.includes('NO_BACKSLASH_ESCAPES'))
    throw new Error('the database server keeps NO_BACKSLASH_ESCAPES in sql_mode: remove it')
  if (charset !== 'utf8mb4')
    throw new Error(
      `the database server reads statements as ${charset}, not utf8mb4: remove skip-character-set-client-handshake`,
    )
  if (hasOthers && isReadOnly !== 0) throw retryable('the server is read-only', 1290)
}

function askOver(connection: Connection): Ask {
  return async (sql) => {
    const rows = await connection.command(sql)
    return Array.isArray(rows) ? (rows as unknown[]) : []
  }
}

/**
 * Takes the deadlines off the runner's connection, for changes of the schema, and gives up a change that cannot get at its table
 * (it would hold up everyone behind it). Such a connection is to be ended with `dropConnection`.
 */
export async function liftDeadlines(runner: QueryRunner, isMariaDb: boolean): Promise<void> {
  await runner.query(`SET SESSION ${isMariaDb ? 'max_statement_time' : 'max_execution_time'} = 0`)
  await runner.query(`SET SESSION lock_wait_timeout = ${METADATA_LOCK_WAIT_SECONDS}`)
}

/** Ends the runner's connection instead of giving it back to the pool. */
export async function dropConnection(runner: QueryRunner): Promise<void> {
  // There is none if the pool could not make one.
  const connection = await runner.connect().then(
    (made) => made as PoolConnection,
    () => null,
  )
  connection?.destroy()
  await runner.release()
}

/** Version comments hold what only one family of servers knows. */
function sessionStatements(statementSeconds: number): string[] {
  const deadline = `/*M! , max_statement_time = ${statementSeconds} */ /*!50708 , max_execution_time = ${statementSeconds * 1000} */`
  return [
    'SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED',
    `SET SESSION autocommit = 1, time_zone = '+00:00', sql_mode = '${SQL_MODE}', innodb_lock_wait_timeout = ${LOCK_WAIT_SECONDS} ${deadline}`,
  ]
}
