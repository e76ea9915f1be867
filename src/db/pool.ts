import type { QueryError } from 'mysql2'
import { startDeadline } from '#shared/time.ts'
import type { Connection } from './connection.ts'
import { timedOut } from './database-error.ts'
import { answerWithinMs, CONNECT_TIMEOUT_MS, patienceLeftMs } from './patience.ts'
import type { Send } from './queries.ts'
import type { Server, Servers } from './servers.ts'

/** How many connections are in use, and how many callers wait for one. */
export interface PoolCounts {
  readonly limit: number
  readonly used: number
  readonly waiting: number
}

/** Maximum wait for a connection. */
const WAIT_MS = 10_000

interface Waiter {
  readonly begin: () => void
  readonly cancelDeadline: () => void
}

/**
 * The connections of one thread to the current server. Callers beyond the limit wait in order of arrival. Each caller tries every server
 * once.
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

  /** Calls `listener` whenever a connection becomes free and no caller waits for it. */
  onRelease(listener: () => void): void {
    this.#onRelease.push(listener)
  }

  /** Takes a connection for one caller, which must end with `release` or `destroy`. */
  async take(): Promise<Connection> {
    await this.#waitForSlot()
    try {
      return await this.#connect()
    } catch (error) {
      this.#freeSlot()
      throw error
    }
  }

  /** Returns a connection without an open transaction. */
  release(connection: Connection): void {
    this.#returnToServer(connection, true)
  }

  /** Ends a connection whose state is unknown; the server rolls back an open transaction. */
  destroy(connection: Connection): void {
    this.#returnToServer(connection, false)
  }

  /** Sends one statement on a free connection. */
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
        if (failures.length < this.#servers.count && patienceLeftMs() > CONNECT_TIMEOUT_MS) continue
        throw this.#servers.count === 1 ? error : noServer(failures, error as Error)
      }
    }
  }

  #returnToServer(connection: Connection, isReusable: boolean): void {
    const server = this.#servedBy.get(connection)
    if (!server) throw new Error('a connection was returned twice')
    this.#servedBy.delete(connection)
    if (connection.isServerFailed) this.#servers.leave(server)
    server.release(connection, isReusable)
    this.#freeSlot()
  }

  /** Waits until the caller may use one of the connections. Throws after `WAIT_MS` or when the caller's patience ends. */
  #waitForSlot(): Promise<void> | void {
    if (this.#used < this.#limit) {
      this.#used += 1
      return
    }
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        begin: resolve,
        cancelDeadline: startDeadline(answerWithinMs(WAIT_MS), () => {
          this.#waiting.splice(this.#waiting.indexOf(waiter), 1)
          reject(timedOut('no connection to the database became free'))
        }),
      }
      this.#waiting.push(waiter)
    })
  }

  /** Lets the caller that has waited longest use a connection. */
  #freeSlot(): void {
    const next = this.#waiting.shift()
    if (next) {
      next.cancelDeadline()
      next.begin()
      return
    }
    this.#used -= 1
    for (const listener of this.#onRelease) listener()
  }
}

/** Copies the last error's codes, so that callers can tell whether to retry. */
function noServer(failures: readonly string[], { code, errno, fatal, syscall }: Error & Partial<QueryError>): Error {
  return Object.assign(new Error(`no server of BILLING_DATABASE_URL is usable: ${failures.join('; ')}`), {
    code,
    errno,
    fatal,
    syscall,
  })
}
