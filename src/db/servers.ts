import type { Pool, PoolConnection, QueryError } from 'mysql2'
import { setTarget, placeOf, type Place } from './mysql-adapter.ts'

/** The servers of `BILLING_DATABASE_URL`: connections go to one of them until it fails, then to the next. */
export class Servers {
  readonly #places: readonly Place[]
  #index: number
  #current: Place

  constructor(places: readonly Place[], index = 0) {
    this.#places = places
    this.#index = index
    this.#current = this.#at(index)
  }

  get count(): number {
    return this.#places.length
  }

  /** The server in use. A new object after each failure, so that older connections can be recognized. */
  get current(): Place {
    return this.#current
  }

  /** Leaves a server with all its connections. Where several connections fail together, only the first moves on. */
  leave(place: Place): void {
    if (place !== this.#current || this.count === 1) return
    this.#index = (this.#index + 1) % this.count
    this.#current = this.#at(this.#index)
  }

  #at(index: number): Place {
    return { ...this.#places[index] }
  }
}

/**
 * Gives the pool's callers only connections to the server in use, prepared by `prepare`, which rejects if the server is unusable.
 * For each caller every server is tried once.
 */
export function followServers(
  pool: Pool,
  servers: Servers,
  prepare: (connection: PoolConnection) => Promise<unknown>,
): void {
  const take = pool.getConnection.bind(pool)
  const prepared = new WeakSet<PoolConnection>()
  /** Behind one address, too, a new connection may lead to another server: a primary that was demoted still answers on the old ones. */
  const refused = new WeakSet<PoolConnection>()
  type Give = Parameters<Pool['getConnection']>[0]
  const attempt = (failures: readonly string[], give: Give): void => {
    const failAt = (place: Place, error: Error): void => {
      servers.leave(place)
      const failed = [...failures, `${nameOf(place)}: ${error.message}`]
      if (failed.length < servers.count) attempt(failed, give)
      else give(servers.count === 1 ? error : noServerError(failed, error), undefined as unknown as PoolConnection)
    }
    const place = servers.current
    setTarget(pool, place)
    take((error, connection) => {
      if (error) failAt(place, error)
      else if (refused.has(connection) || placeOf(connection) !== servers.current) {
        connection.destroy()
        attempt(failures, give)
      } else if (prepared.has(connection)) give(null, connection)
      else
        prepare(connection).then(
          () => {
            prepared.add(connection)
            give(null, connection)
          },
          (error: unknown) => {
            connection.destroy()
            failAt(placeOf(connection), error as Error)
          },
        )
    })
  }
  pool.getConnection = (give) => attempt([], give)
  pool.on('connection', (connection: PoolConnection) => {
    connection.on('refused', () => {
      servers.leave(placeOf(connection))
      refused.add(connection)
    })
  })
}

/** A server's name for people. */
export function nameOf({ host, port, socketPath }: Place): string {
  return socketPath ?? `${host}:${port}`
}

/** Keeps the code of the last server's error, which decides about a retry. */
function noServerError(failures: readonly string[], { code, errno, fatal }: Error & Partial<QueryError>): QueryError {
  const message = `no server of BILLING_DATABASE_URL serves: ${failures.join('; ')}`
  return Object.assign(new Error(message), { code, errno, fatal }) as QueryError
}
