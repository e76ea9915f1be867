import mysql, { type PoolConnection, type TypedParameterValue } from 'mysql2'
import { isNotPrepared, isServerUnusable, unresponsive } from './database-error.ts'
import type { Param, Send } from './queries.ts'

/** Gets the answer to a command, or its error. */
type Answer = (error: Error | null, result: unknown) => void

/** How long a server may be silent until the connection counts as lost, and whether there are other servers. */
export interface Silence {
  readonly maxMs: number
  readonly hasOthers: boolean
}

/**
 * A connection to a server that one caller uses at a time. It sends one command at a time, by the driver's documented interface: proxies
 * that read the protocol, such as MySQL Router, break when a second command arrives before the answer to the first.
 */
export class Connection {
  readonly #driver: PoolConnection
  readonly #silence: Silence
  #refusal: 'unusable' | 'silent' | null = null

  constructor(driver: PoolConnection, silence: Silence) {
    this.#driver = driver
    this.#silence = silence
  }

  /** Why the server cannot be used at this time; null if it can be. */
  get refusal(): 'unusable' | 'silent' | null {
    return this.#refusal
  }

  /**
   * Sends a statement, as a prepared one: that costs the server and the driver least. Where a list is among the parameters, the text
   * depends on its length, and the driver writes the values into it.
   */
  readonly send: Send = async (sql, params) => {
    if (params.some((value) => Array.isArray(value))) return this.#sendAsText(sql, params)
    const values = params.map(bound)
    try {
      return await this.#answer((answer) => this.#driver.execute(sql, values, answer))
    } catch (error) {
      if (!isNotPrepared(error)) throw error
      this.#driver.unprepare(sql)
      return this.#sendAsText(sql, params)
    }
  }

  /** Sends a command about the session or a transaction, which is never prepared. */
  async command(sql: string): Promise<unknown> {
    return this.#sendAsText(sql, [])
  }

  /** Returns it to the driver's pool. */
  release(): void {
    this.#driver.release()
  }

  /** Ends it; what is open on the server is rolled back. */
  destroy(): void {
    this.#driver.destroy()
  }

  #sendAsText(sql: string, params: readonly Param[]): Promise<unknown> {
    return this.#answer((answer) => this.#driver.query(sql, [...params], answer))
  }

  #answer(ask: (answer: Answer) => void): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const deadline = setTimeout(() => {
        this.#refusal = 'silent'
        this.#driver.destroy()
        reject(unresponsive(this.#silence.hasOthers))
      }, this.#silence.maxMs)
      ask((error, result) => {
        clearTimeout(deadline)
        if (error && isServerUnusable(error)) this.#refusal = 'unusable'
        if (error) reject(error)
        else resolve(result)
      })
    })
  }
}

/** Read once: the package looks the file up at each `mysql.TypedParameter`. */
const { LONGLONG } = mysql.TypedParameter

/** The driver sends every number as a float, which no LIMIT takes. */
function bound(value: Param | undefined): Exclude<Param, readonly Param[]> | TypedParameterValue {
  if (value === undefined) throw new Error('a value of a statement is undefined')
  return Number.isInteger(value) ? LONGLONG(value as number) : (value as Exclude<Param, readonly Param[]>)
}
