import type { QueryError } from 'mysql2'
import type { Connection } from './connection.ts'
import { timedOut } from './database-error.ts'
import type { Send } from './queries.ts'
import type { Server, Servers } from './servers.ts'

/** How many connections callers use, and how many callers wait for one. */
export interface PoolCounts {
  readonly limit: number
  readonly used: number
  readonly waiting: number
}

/** How long a caller waits for a connection. */
const WAIT_MS = 10_000

interface Waiter {
  readonly begin: () => void
  readonly deadline: NodeJS.Timeout
}

/**
 * The connections of a process, or of a thread, to the server in use. Callers beyond the limit wait in the order in which they came. Each
 * caller tries every server once.
 */
export class ConnectionPool {
  readonly #servers: Servers
  readonly #limit: number
  readonly #servedBy = new WeakMap<Connection, Server>()
  readonly #waiting: Waiter[] = []
  readonly #onRelease: (() => void)[] = []
  #used = 0

  constructor(servers: Servers, limit: number) {
    this.#servers = servers
    this.#limit = limit
  }

  get counts(): PoolCounts {
    return { limit: this.#limit, used: this.#used, waiting: this.#waiting.length }
  }

  /** Calls `listener` each time that a connection has become free and nobody waits for it. */
  onRelease(listener: () => void): void {
    this.#onRelease.push(listener)
  }

  /** A connection for one caller, who gives it back by `release` or `destroy`. */
  async take(): Promise<Connection> {
    await this.#permission()
    try {
      return await this.#connect()
    } catch (error) {
      this.#passOn()
      throw error
    }
  }

  /** Gives a connection back on which nothing is open. */
  release(connection: Connection): void {
    this.#giveBack(connection, true)
  }

  /** Ends a connection whose state is unknown; the server rolls back what is open. */
  destroy(connection: Connection): void {
    this.#giveBack(connection, false)
  }

  /** Sends a statement by itself, on a connection that is free. */
  readonly send: Send = async (sql, params) => {
    const connection = await this.take()
    try {
      return await connection.send(sql, params)
    } finally {
      this.release(connection)
    }
  }

  async end(): Promise<void> {
    await this.#servers.current.end()
  }

  async #connect(): Promise<Connection> {
    const failures: string[] = []
    for (;;) {
      const server = this.#servers.current
      try {
        const connection = await server.connect()
        this.#servedBy.set(connection, server)
        return connection
      } catch (error) {
        this.#servers.leave(server)
        failures.push(`${server.name}: ${(error as Error).message}`)
        if (failures.length < this.#servers.count) continue
        throw this.#servers.count === 1 ? error : noServer(failures, error as Error)
      }
    }
  }

  #giveBack(connection: Connection, isReusable: boolean): void {
    const server = this.#servedBy.get(connection)
    if (!server) throw new Error('a connection was given back twice')
    this.#servedBy.delete(connection)
    if (connection.refusal !== null) this.#servers.leave(server)
    server.giveBack(connection, isReusable)
    this.#passOn()
  }

  /** Resolves when the caller may use one of the connections. */
  #permission(): Promise<void> | void {
    if (this.#used < this.#limit) {
      this.#used += 1
      return
    }
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        begin: resolve,
        deadline: setTimeout(() => {
          this.#waiting.splice(this.#waiting.indexOf(waiter), 1)
          reject(timedOut('no connection to the database became free'))
        }, WAIT_MS),
      }
      this.#waiting.push(waiter)
    })
  }

  /** The next caller may use a connection. */
  #passOn(): void {
    const next = this.#waiting.shift()
    if (next) {
      clearTimeout(next.deadline)
      next.begin()
      return
    }
    this.#used -= 1
    for (const listener of this.#onRelease) listener()
  }
}

/** Keeps the code of the last server's error, which decides about a retry. */
function noServer(failures: readonly string[], { code, errno, fatal }: Error & Partial<QueryError>): Error {
  return Object.assign(new Error(`no server of BILLING_DATABASE_URL serves: ${failures.join('; ')}`), {
    code,
    errno,
    fatal,
  })
}
