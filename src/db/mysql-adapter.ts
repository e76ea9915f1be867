import type { Socket } from 'node:net'
import mysql, {
  type Pool,
  type PoolConnection,
  type PoolOptions,
  type PrepareStatementInfo,
  type TypedParameterValue,
} from 'mysql2'
import { cacheMetadata } from './cached-metadata.ts'
import { Execute, Query, type DriverCommand } from './driver-commands.ts'
import { isServerUnusable, retryable } from './database-error.ts'
import type { Param, Send } from './queries.ts'

cacheMetadata()

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

/** The connection settings of the pool; each connection keeps a copy from when it was opened. */
interface TargetedConfig {
  place?: Place
}

/** Sets the server of future connections of the pool. */
export function setTarget(pool: Pool, place: Place): void {
  const { connectionConfig } = pool.config as unknown as { readonly connectionConfig: TargetedConfig }
  const { host, port, socketPath } = place
  Object.assign(connectionConfig, { host, port, socketPath, place })
}

/** The place of the connection, the identical object. */
export function placeOf(connection: PoolConnection): Place {
  const { place } = connection.config as unknown as TargetedConfig
  if (!place) throw new Error('the connection was made before the pool had a target')
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

/** A statement that is to be sent, and who is given its answer. */
export interface Statement {
  readonly sql: string
  readonly params: readonly Param[]
  readonly finish: Finish
}

type Finish = (error: Error | null, result: unknown) => void

/** Sends each statement by itself. */
export function sendOver(connection: PoolConnection): Send {
  return async (sql, params) =>
    new Promise((resolve, reject) => {
      sendTogether(connection, [{ sql, params, finish: (error, result) => (error ? reject(error) : resolve(result)) }])
    })
}

/**
 * Sends statements in one write; the server runs them one after the other, each whatever became of those before. Several are for a
 * session that commits nothing by itself.
 *
 * They are sent as prepared ones, which cost the server and the driver least. Where a list is among the parameters, the text depends on
 * its length: the driver writes the values into it.
 */
export function sendTogether(connection: PoolConnection, statements: readonly Statement[]): void {
  const known = preparedOn(connection)
  const missing = new Set(statements.filter((each) => isPrepared(each) && !known.has(each.sql)).map(({ sql }) => sql))
  if (missing.size === 0) {
    write(connection, known, statements)
    return
  }
  let failure: Error | null = null
  const prepared = (sql: string, error: Error | null, made: PrepareStatementInfo): void => {
    if (!error) known.set(sql, made)
    else if (!isNotPrepared(error)) failure ??= error
    missing.delete(sql)
    if (missing.size > 0) return
    if (failure) for (const { finish } of statements) reportingRefusals(connection, finish)(failure, undefined)
    else write(connection, known, statements)
  }
  for (const sql of [...missing]) connection.prepare(sql, (error, made) => prepared(sql, error, made))
}

type Prepared = Map<string, PrepareStatementInfo>

const preparedStatements = new WeakMap<PoolConnection, Prepared>()

/** By text: the driver's own `execute` writes a key of each statement's whole text to look it up. */
function preparedOn(connection: PoolConnection): Prepared {
  let known = preparedStatements.get(connection)
  if (!known) {
    preparedStatements.set(connection, (known = new Map<string, PrepareStatementInfo>()))
    gatherWrites(connection as unknown as Driver)
  }
  return known
}

/** Not where it is about the session, nor where the text depends on a list's length. */
function isPrepared({ sql, params }: Statement): boolean {
  return !SESSION_COMMANDS.has(sql) && !params.some((value) => Array.isArray(value))
}

function write(connection: PoolConnection, known: Prepared, statements: readonly Statement[]): void {
  const driver = connection as unknown as Driver
  const [first] = statements
  if (statements.length === 1 && first) driver.addCommand(commandOf(connection, known, first, true))
  else driver.addCommand(new Together(statements.map((each) => commandOf(connection, known, each, false))))
}

function commandOf(connection: PoolConnection, known: Prepared, statement: Statement, isAlone: boolean): DriverCommand {
  const { sql, params } = statement
  const finish = reportingRefusals(connection, statement.finish)
  const textCommand = (): DriverCommand => new Query({ sql: connection.format(sql, params) }, finish)
  const prepared = isPrepared(statement) ? known.get(sql) : undefined
  if (!prepared) return textCommand()
  return new Execute({ statement: prepared, values: params.map(bound) }, (error, result) => {
    // The driver closes those that were prepared longest ago.
    if (error) known.delete(sql)
    if (!error || !isNotPrepared(error)) finish(error, result)
    else if (isAlone) (connection as unknown as Driver).addCommand(textCommand())
    // Others of the same write have been run without it.
    else finish(retryable(error.message), undefined)
  })
}

/**
 * The server prepares no more statements (its `max_prepared_stmt_count` is for all its clients), or has forgotten this one: nothing was
 * run, and as text it will be.
 */
const NOT_PREPARED = new Set([1461, 1615, 1243])

function isNotPrepared(error: Error): boolean {
  return NOT_PREPARED.has((error as { errno?: number }).errno ?? 0)
}

/** Notes on the connection, as the event `refused`, that its server serves nobody at this time. */
function reportingRefusals(connection: PoolConnection, finish: Finish): Finish {
  return (error, result) => {
    if (error && isServerUnusable(error)) connection.emit('refused')
    finish(error, result)
  }
}

/** What the driver's connections and commands have besides (`test/db/mysql-adapter.test.ts` notices when they have it otherwise). */
interface Driver {
  write: (bytes: Buffer) => void
  /** The number that the server's next packet must have. */
  sequenceId: number
  addCommand: (command: DriverCommand) => unknown
}

/** The first packet of an answer; the command was packet 0. */
const FIRST_OF_ANSWER = 1

/** Commands that go out in one write, where the driver would write each once the one before is answered. */
class Together implements DriverCommand {
  #waiting: DriverCommand[]

  constructor(commands: DriverCommand[]) {
    this.#waiting = commands
  }

  execute(packet: unknown, driver: Driver): boolean {
    if (packet === undefined) {
      this.#waiting = inOneWrite(driver, () => this.#waiting.filter((command) => !command.execute(undefined, driver)))
    } else {
      const isOver = this.#waiting[0]?.execute(packet, driver) ?? true
      if (!isOver) return false
      this.#waiting.shift()
    }
    driver.sequenceId = FIRST_OF_ANSWER
    return this.#waiting.length === 0
  }

  onResult(error: Error): void {
    for (const command of this.#waiting.splice(0)) command.onResult(error)
  }
}

/** What is being written together at this moment. */
let gathered: Buffer[] | null = null

/** Lets `inOneWrite` gather what the connection writes. Done once: a function that is replaced each time keeps garbage alive. */
function gatherWrites(driver: Driver): void {
  const { write } = driver
  driver.write = (bytes) => {
    if (gathered) gathered.push(bytes)
    else write.call(driver, bytes)
  }
}

/** Copying a few hundred bytes costs less than writing several buffers. */
function inOneWrite<T>(driver: Driver, act: () => T): T {
  const written: Buffer[] = (gathered = [])
  try {
    return act()
  } finally {
    gathered = null
    driver.write(Buffer.concat(written))
  }
}

type Bound = Exclude<Param, readonly Param[]> | TypedParameterValue

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

/** After this a session commits nothing before a COMMIT, not even statements that follow an aborted transaction. */
export const BEGIN = 'SET autocommit = 0'
/** Would commit what is open, which nothing is behind a COMMIT or a ROLLBACK. */
export const END = 'SET autocommit = 1'

/** Sent as text. */
const SESSION_COMMANDS: ReadonlySet<string> = new Set([BEGIN, END, 'COMMIT', 'ROLLBACK'])

/** Ends what `BEGIN` began. The connection may be released once this is answered. */
export async function end(connection: PoolConnection, how: 'COMMIT' | 'ROLLBACK'): Promise<void> {
  return new Promise((resolve, reject) => {
    sendTogether(connection, [
      { sql: how, params: [], finish: (error) => (error ? reject(error) : resolve()) },
      { sql: END, params: [], finish: (error) => error && connection.destroy() },
    ])
  })
}

/** Taken once: the package looks the file up again at each `TypedParameter`, which took 4 % of a payment. */
const { LONGLONG } = mysql.TypedParameter

/** The driver sends every number as a float, which no LIMIT takes. */
function bound(value: Param | undefined): Bound {
  if (value === undefined) throw new Error('a value of a statement is undefined')
  return Number.isInteger(value) ? LONGLONG(value as number) : (value as Bound)
}
