import type { Socket } from 'node:net'
import mysql, { type Pool, type PoolConnection, type PrepareStatementInfo, type TypedParameterValue } from 'mysql2'
import type { Param, Send } from './queries.ts'

type Line = Pool | PoolConnection

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
  return Object.assign(new Error(message), { code: 'ETIMEDOUT' })
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
export function sendOver(line: Line): Send {
  const execute = 'prepare' in line ? executeOn(line) : line.execute.bind(line)
  return async (sql, params) =>
    new Promise((resolve, reject) => {
      const settle = (error: Error | null, result: unknown): void => {
        if (error) reject(error)
        else resolve(result)
      }
      const sendText = (): unknown => line.query(sql, params as Param[], settle)
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

/** Sends what the protocol cannot prepare: the start and the end of a transaction. */
export async function command(line: Line, sql: 'START TRANSACTION' | 'COMMIT' | 'ROLLBACK'): Promise<void> {
  return new Promise((resolve, reject) => {
    line.query(sql, (error: Error | null) => {
      if (error) reject(error)
      else resolve()
    })
  })
}

/** Taken once: the package looks the file up again at each `TypedParameter`, which took 4 % of a payment. */
const { LONGLONG } = mysql.TypedParameter

/** The driver sends every number as a float, which no LIMIT takes. */
function bound(value: Param | undefined): Bound {
  if (value === undefined) throw new Error('a value of a statement is undefined')
  return Number.isInteger(value) ? LONGLONG(value as number) : (value as Bound)
}
