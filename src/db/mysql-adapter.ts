import type { Socket } from 'node:net'
import mysql, {
  type Pool,
  type PoolConnection,
  type PoolOptions,
  type PrepareStatementInfo,
  type TypedParameterValue,
} from 'mysql2'
import { isServerUnusable } from './database-error.ts'
import type { Param, Send } from './queries.ts'

/** Where a server listens. */
export type Place = Readonly<Pick<PoolOptions, 'host' | 'port' | 'socketPath'>>

/** What mysql2's pool counts for nobody (`test/db/mysql-adapter.test.ts` notices when it counts in another way). */
interface CountedPool {
  readonly config: { readonly connectionLimit: number }
  readonly _allConnections: { readonly length: number }
  readonly _freeConnections: { readonly length: number }
  readonly _connectionQueue: { readonly length: number }
}

/** A pool's connections: how many there may be, are, and are free; and how many callers wait for one. */
export function poolCounts(pool: Pool): Readonly<Record<'limit' | 'all' | 'free' | 'queued', number>> {
  const counted = pool as unknown as CountedPool
  return {
    limit: counted.config.connectionLimit,
    all: counted._allConnections.length,
    free: counted._freeConnections.length,
    queued: counted._connectionQueue.length,
  }
}

/** The connection's socket, for deadlines of our own. */
export function socketOf(connection: PoolConnection): Socket {
  return (connection as unknown as { readonly stream: Socket }).stream
}

/** The settings of connections: the pool's, of which each connection keeps a copy as they were when it was made. */
interface Aimed {
  place?: Place
}

/** Where the pool's connections go that are made from now on. */
export function aim(pool: Pool, place: Place): void {
  const { connectionConfig } = pool.config as unknown as { readonly connectionConfig: Aimed }
  const { host, port, socketPath } = place
  Object.assign(connectionConfig, { host, port, socketPath, place })
}

/** The place that the connection was aimed at, the very object. */
export function placeOf(connection: PoolConnection): Place {
  const { place } = connection.config as unknown as Aimed
  if (!place) throw new Error('the connection was made before the pool was aimed')
  return place
}

/** A caller that has waited too long for a connection gets an error; the connection that comes after all goes to the next caller. */
export function boundWaiting(pool: Pool, waitMs: number): void {
  const take = pool.getConnection.bind(pool)
  pool.getConnection = (give) => {
    let isLate = false
    const deadline = setTimeout(() => {
      isLate = true
      give(timedOut('no connection to the database became free'), undefined as unknown as PoolConnection)
    }, waitMs)
    take((error, connection) => {
      clearTimeout(deadline)
      if (!isLate) give(error, connection)
      else if (!error) connection.release()
    })
  }
}

/** An error that `isRetryable` takes for a lost connection. */
export function timedOut(message: string): Error {
  return Object.assign(new Error(message), { code: 'ETIMEDOUT', fatal: true })
}

/** A connection of the pool, for one transaction; it goes back by `release`, or is ended by `destroy`. */
export async function takeConnection(pool: Pool): Promise<PoolConnection> {
  return new Promise((resolve, reject) => {
    pool.getConnection((error, connection) => {
      if (error) reject(error)
      else resolve(connection)
    })
  })
}

/**
 * The server prepares no more statements (its `max_prepared_stmt_count` is for all its clients), or has forgotten this one: nothing was
 * run, and as text it will be.
 */
const NOT_PREPARED = new Set([1461, 1615, 1243])

/**
 * Sends statements as prepared ones, which cost the server and the driver least. Where a list is among the parameters, the text
 * depends on its length: the driver writes the values into it.
 */
export function sendOver(connection: PoolConnection): Send {
  const execute = executeOn(connection)
  return async (sql, params) =>
    new Promise((resolve, reject) => {
      const settle = settling(connection, resolve, reject)
      const sendText = (): unknown => connection.query(sql, params as Param[], settle)
      if (params.some((value) => Array.isArray(value))) sendText()
      else {
        execute(sql, params.map(bound), (error: Error | null, result: unknown) => {
          if (error && NOT_PREPARED.has((error as { errno?: number }).errno ?? 0)) sendText()
          else settle(error, result)
        })
      }
    })
}

type Bound = Exclude<Param, readonly Param[]> | TypedParameterValue
type Execute = (sql: string, values: Bound[], settle: (error: Error | null, result: unknown) => void) => unknown

const prepared = new WeakMap<PoolConnection, Map<string, PrepareStatementInfo>>()

/** As the driver's own `execute`, which writes a key of each statement's whole text to look it up. */
function executeOn(connection: PoolConnection): Execute {
  let statements = prepared.get(connection)
  if (!statements) prepared.set(connection, (statements = new Map<string, PrepareStatementInfo>()))
  const known = statements
  return (sql, values, settle) => {
    const run = (statement: PrepareStatementInfo): unknown =>
      statement.execute(values, (error: Error | null, result: unknown) => {
        // The driver closes those that were prepared longest ago.
        if (error) known.delete(sql)
        settle(error, result)
      })
    const statement = known.get(sql)
    if (statement) return run(statement)
    return connection.prepare(sql, (error, made) => {
      if (error) settle(error, undefined)
      else {
        known.set(sql, made)
        run(made)
      }
    })
  }
}

/** Sends each statement on a connection that is free. */
export function sendOn(pool: Pool): Send {
  return async (sql, params) => {
    const connection = await takeConnection(pool)
    try {
      return await sendOver(connection)(sql, params)
    } finally {
      connection.release()
    }
  }
}

/** Sends what the protocol cannot prepare: the start and the end of a transaction. */
export async function command(
  connection: PoolConnection,
  sql: 'START TRANSACTION' | 'COMMIT' | 'ROLLBACK',
): Promise<void> {
  return new Promise((resolve, reject) => {
    connection.query(
      sql,
      settling(connection, () => resolve(), reject),
    )
  })
}

/** Notes on the connection, as the event `refused`, that its server serves nobody at this time. */
function settling(
  connection: PoolConnection,
  resolve: (result: unknown) => void,
  reject: (error: Error) => void,
): (error: Error | null, result: unknown) => void {
  return (error, result) => {
    if (!error) {
      resolve(result)
      return
    }
    if (isServerUnusable(error)) connection.emit('refused')
    reject(error)
  }
}

/** Taken once: the package looks the file up again at each `TypedParameter`, which took 4 % of a payment. */
const { LONGLONG } = mysql.TypedParameter

/** The driver sends every number as a float, which no LIMIT takes. */
function bound(value: Param | undefined): Bound {
  if (value === undefined) throw new Error('a value of a statement is undefined')
  return Number.isInteger(value) ? LONGLONG(value as number) : (value as Bound)
}
