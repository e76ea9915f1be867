import { createPool, type Pool, type PoolConnection, type PoolOptions } from 'mysql2'
import { isClusterNode, isReady, type Ask } from './cluster.ts'
import { retryable } from './database-error.ts'
import { boundWaiting, placeOf, poolCounts, socketOf, timedOut } from './mysql-adapter.ts'
import { followServers, type Servers } from './servers.ts'
import { waitingForTurn } from './turns.ts'

const LOCK_WAIT_SECONDS = 5
/** How long a caller waits for a connection; the driver would let it wait indefinitely behind connections that hang. */
const CONNECTION_WAIT_MS = 10_000
/** A connection in use that is silent for longer than its statement may take has lost its server. */
const SILENCE_FACTOR = 1.5
const SQL_MODE = 'STRICT_TRANS_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'

/**
 * A pool whose every connection, whatever the server's defaults are, is READ COMMITTED, in UTC, strict about values, and has
 * deadlines: for a lock, for a statement, and for a server that is silent (the connection is dropped, as if it were lost). Nobody
 * waits long for a connection either. On a cluster, what was committed at any node before a read or a transaction begins is seen.
 */
export function openPool(options: PoolOptions, servers: Servers, statementSeconds: number): Pool {
  const pool = createPool(options)
  const silenceMs = statementSeconds * SILENCE_FACTOR * 1000
  pool.on('connection', (connection: PoolConnection) => {
    const socket = socketOf(connection)
    socket.on('timeout', () => {
      servers.leave(placeOf(connection))
      socket.destroy(timedOut('the database server does not answer'))
    })
    socket.setTimeout(silenceMs)
  })
  pool.on('acquire', (connection: PoolConnection) => socketOf(connection).setTimeout(silenceMs))
  pool.on('release', (connection: PoolConnection) => socketOf(connection).setTimeout(0))
  followServers(pool, servers, (connection) => beginSession(askOver(connection), statementSeconds, servers.count > 1))
  boundWaiting(pool, CONNECTION_WAIT_MS)
  return pool
}

/** Newer MariaDB servers give the variable as text. */
export const IS_READ_ONLY = "CAST(@@GLOBAL.read_only AS CHAR) NOT IN ('0', 'OFF')"

/**
 * Rejects with an error that is tried again where the server does not serve, and, of several, where it is read-only. With
 * `statementSeconds` 0 a statement may take any time.
 */
export async function beginSession(ask: Ask, statementSeconds: number, hasOthers: boolean): Promise<void> {
  // Sent together, so that they take one round trip.
  const [isNode, rights] = await Promise.all([
    isClusterNode(ask),
    hasOthers ? ask(`SELECT ${IS_READ_ONLY} AS isReadOnly`) : [],
    ...sessionStatements(statementSeconds).map(ask),
  ])
  const [{ isReadOnly } = { isReadOnly: 0 }] = rights as readonly { readonly isReadOnly: number }[]
  if (isReadOnly !== 0) throw retryable('the server is read-only', 1290)
  if (!isNode) return
  const [isServing] = await Promise.all([isReady(ask), ask('SET SESSION wsrep_sync_wait = 7')])
  if (!isServing) throw retryable('the node is cut off from the majority of its cluster', 1047)
}

function askOver(connection: PoolConnection): Ask {
  return (sql) =>
    new Promise((resolve, reject) => {
      connection.query(sql, (error: Error | null, rows: unknown) => {
        if (error) reject(error)
        else resolve(Array.isArray(rows) ? rows : [])
      })
    })
}

/** How many connections a pool has, in use and free, and how many callers wait for one. */
export type PoolUse = Readonly<Record<'used' | 'free' | 'waiting', number>>

export function poolUse(pool: Pool): PoolUse {
  const { all, free, queued } = poolCounts(pool)
  return { used: all - free, free, waiting: queued + waitingForTurn(pool) }
}

/** Version comments hold what only one family of servers knows. */
function sessionStatements(statementSeconds: number): string[] {
  const deadline = `/*M! , max_statement_time = ${statementSeconds} */ /*!50708 , max_execution_time = ${statementSeconds * 1000} */`
  return [
    'SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED',
    `SET SESSION time_zone = '+00:00', sql_mode = '${SQL_MODE}', innodb_lock_wait_timeout = ${LOCK_WAIT_SECONDS} ${deadline}`,
  ]
}
