import mysql, { type PoolConnection, type PrepareStatementInfo, type TypedParameterValue } from 'mysql2'
import { startDeadline } from '#shared/time.ts'
import type { ClusterKind } from './cluster.ts'
import { isNotPrepared, isServerUnusable, unresponsive } from './database-error.ts'
import { answerWithinMs } from './patience.ts'
import type { Param, Send } from './queries.ts'

/** Per connection. By default the server keeps 16 382 for all connections together. */
export const MAX_PREPARED = 200

/** Receives the answer to a command, or its error. */
type Answer = (error: Error | null, result: unknown) => void

/** How long a server may be silent before the connection counts as lost, and whether there are other servers. */
export interface Silence {
  readonly maxMs: number
  readonly hasOthers: boolean
}

/**
 * A connection to a server, for one caller at a time. It sends one command at a time, through the driver's documented interface. Proxies
 * that read the protocol, such as MySQL Router, break when a second command arrives before the answer to the first.
 */
export class Connection {
  /** The kind of its server's cluster, known since its session began. */
  cluster: ClusterKind = null
  readonly #driver: PoolConnection
  readonly #silence: Silence
  /** By their texts, the oldest first. The driver would find them by a key as long as the text, made anew at each call. */
  readonly #prepared = new Map<string, PrepareStatementInfo>()
  #isServerFailed = false

  constructor(driver: PoolConnection, silence: Silence) {
    this.#driver = driver
    this.#silence = silence
  }

  /** Whether the server was silent for too long, or answered that it cannot be used now. */
  get isServerFailed(): boolean {
    return this.#isServerFailed
  }

  /**
   * Sends a prepared statement, which costs the server and the driver least. With a list among the parameters the text depends on the
   * length of the list, so the driver writes the values into the text instead.
   */
  readonly send: Send = async (sql, params) => {
    if (params.some((value) => Array.isArray(value))) return this.#sendAsText(sql, params)
    const values = params.map((value) => bound(inRange(value)))
    try {
      const statement = this.#prepared.get(sql) ?? (await this.#prepare(sql))
      return await this.#answer((answer) => statement.execute(values, answer))
    } catch (error) {
      if (!isNotPrepared(error)) throw error
      this.#unprepare(sql)
      return this.#sendAsText(sql, params)
    }
  }

  /**
   * As `send`, in a transaction. While it prepares a SELECT, a node of a Galera cluster may forget that another node has rolled the
   * transaction back, and would then commit the next statements one by one. So nothing is prepared there.
   */
  readonly sendInTransaction: Send = async (sql, params) =>
    this.cluster === 'galera' ? this.#sendAsText(sql, params) : this.send(sql, params)

  /** Sends a command about the session or a transaction. It is never prepared. */
  async command(sql: string): Promise<unknown> {
    return this.#sendAsText(sql, [])
  }

  /** Returns the connection to the driver's pool. */
  release(): void {
    this.#driver.release()
  }

  /** Ends the connection; the server rolls back an open transaction. */
  destroy(): void {
    this.#driver.destroy()
  }

  async #prepare(sql: string): Promise<PrepareStatementInfo> {
    const [oldest] = this.#prepared.keys()
    if (oldest !== undefined && this.#prepared.size === MAX_PREPARED) this.#unprepare(oldest)
    const statement = (await this.#answer((answer) => this.#driver.prepare(sql, answer))) as PrepareStatementInfo
    this.#prepared.set(sql, statement)
    return statement
  }

  #unprepare(sql: string): void {
    this.#prepared.delete(sql)
    this.#driver.unprepare(sql)
  }

  #sendAsText(sql: string, params: readonly Param[]): Promise<unknown> {
    return this.#answer((answer) => this.#driver.query(sql, params.map(inRange), answer))
  }

  #answer(ask: (answer: Answer) => void): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const cancelDeadline = startDeadline(answerWithinMs(this.#silence.maxMs), () => {
        this.#isServerFailed = true
        this.#driver.destroy()
        reject(unresponsive(this.#silence.hasOthers))
      })
      ask((error, result) => {
        cancelDeadline()
        if (error && isServerUnusable(error)) this.#isServerFailed = true
        if (error) reject(error)
        else resolve(result)
      })
    })
  }
}

const LATEST = new Date('9999-12-31T23:59:59.999Z')

/** A later time than a column holds, such as the second after the bound of a filter: MariaDB compares it wrongly, MySQL refuses it. */
function inRange(value: Param | undefined): Param {
  if (value === undefined) throw new Error('a value of a statement is undefined')
  return value instanceof Date && value > LATEST ? LATEST : value
}

/** Read once, because the package requires a file at each access of `mysql.TypedParameter`. */
const { LONGLONG } = mysql.TypedParameter

/** The driver sends every number as a float, but LIMIT requires an integer. */
function bound(value: Param): Exclude<Param, readonly Param[]> | TypedParameterValue {
  return Number.isInteger(value) ? LONGLONG(value as number) : (value as Exclude<Param, readonly Param[]>)
}
