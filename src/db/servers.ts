import { createPool, type Pool, type PoolConnection, type PoolOptions } from 'mysql2'
import type { ClusterKind } from './cluster.ts'
import { Connection, type Silence } from './connection.ts'

/** Where a server listens. */
export type ServerAddress = Readonly<Pick<PoolOptions, 'host' | 'port' | 'socketPath'>>

/** A server's name in messages. */
export function serverName({ host, port, socketPath }: ServerAddress): string {
  return socketPath ?? `${host}:${port}`
}

/** Prepares the session of a new connection; returns the kind of the server's cluster. Rejects if the server cannot be used. */
export type BeginSession = (connection: Connection) => Promise<ClusterKind>

export interface ServerOptions {
  readonly driver: PoolOptions
  readonly silence: Silence
  readonly beginSession: BeginSession
}

/** A server and the connections to it, until it fails. */
export class Server {
  readonly name: string
  readonly #pool: Pool
  readonly #options: ServerOptions
  readonly #connections = new WeakMap<PoolConnection, Connection>()
  #used = 0
  #isLeft = false

  constructor(address: ServerAddress, options: ServerOptions) {
    this.name = serverName(address)
    this.#options = options
    this.#pool = createPool({ ...options.driver, ...address })
  }

  /** Opens or reuses a connection with a prepared session. */
  async connect(): Promise<Connection> {
    this.#used += 1
    try {
      const driver = await this.#take()
      return this.#connections.get(driver) ?? (await this.#prepare(driver))
    } catch (error) {
      this.#countReturned()
      throw error
    }
  }

  /** Keeps the connection for the next caller, unless it or its server failed. */
  release(connection: Connection, isReusable: boolean): void {
    if (isReusable && !this.#isLeft && !connection.isServerFailed) connection.release()
    else connection.destroy()
    this.#countReturned()
  }

  /** Stops handing out connections. Those in use end when callers return them. */
  leave(): void {
    this.#isLeft = true
    if (this.#used === 0) this.#pool.end(() => undefined)
  }

  async end(): Promise<void> {
    await this.#pool.promise().end()
  }

  #countReturned(): void {
    this.#used -= 1
    if (this.#isLeft && this.#used === 0) this.#pool.end(() => undefined)
  }

  #take(): Promise<PoolConnection> {
    return new Promise((resolve, reject) => {
      this.#pool.getConnection((error, connection) => {
        if (error) reject(error)
        else resolve(connection)
      })
    })
  }

  async #prepare(driver: PoolConnection): Promise<Connection> {
    const connection = new Connection(driver, this.#options.silence)
    try {
      connection.cluster = await this.#options.beginSession(connection)
    } catch (error) {
      driver.destroy()
      throw error
    }
    this.#connections.set(driver, connection)
    return connection
  }
}

/** The servers of `BILLING_DATABASE_URL`: connections use one of them until it fails, then the next. */
export class Servers<Address extends ServerAddress = ServerAddress> {
  readonly #options: ServerOptions
  #addresses: readonly Address[]
  #current: Server

  constructor(addresses: readonly Address[], options: ServerOptions) {
    this.#addresses = addresses
    this.#options = options
    this.#current = this.#open()
  }

  get count(): number {
    return this.#addresses.length
  }

  /** The server in use first, then the others in the order in which they are tried. */
  get addresses(): readonly Address[] {
    return this.#addresses
  }

  /** The server in use. A new object after each failure, so that older connections can be recognized. */
  get current(): Server {
    return this.#current
  }

  /** Stops using a server and all its connections. If several connections fail together, only the first call has an effect. */
  leave(server: Server): void {
    if (server !== this.#current || this.count === 1) return
    server.leave()
    this.#addresses = [...this.#addresses.slice(1), ...this.#addresses.slice(0, 1)]
    this.#current = this.#open()
  }

  #open(): Server {
    return new Server(this.#addresses[0] ?? {}, this.#options)
  }
}
