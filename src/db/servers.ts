import type { Pool, PoolConnection, QueryError } from 'mysql2'
import { aim, placeOf, type Place } from './mysql-adapter.ts'

/** The servers of `BILLING_DATABASE_URL`: connections go to one of them until it fails, then to the next one. */
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

  /** The one in use; another object after each failure, so that connections of before are known by theirs. */
  get current(): Place {
    return this.#current
  }

  /** Gives up a server, and every connection to it. Several connections fail together: only the first moves on. */
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
 * Gives the pool's callers only connections to the server in use, prepared by `prepare`, which rejects where the server does not serve.
 * A caller's connection is tried at each server once.
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
      else give(servers.count === 1 ? error : noneServes(failed, error), undefined as unknown as PoolConnection)
    }
    const place = servers.current
    aim(pool, place)
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
          (fault: unknown) => {
            connection.destroy()
            failAt(placeOf(connection), fault as Error)
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

/** How people name a server. */
export function nameOf({ host, port, socketPath }: Place): string {
  return socketPath ?? `${host}:${port}`
}

/** As the last server's error, for who asks whether to try again. */
function noneServes(failures: readonly string[], { code, errno, fatal }: Error & Partial<QueryError>): QueryError {
  const message = `no server of BILLING_DATABASE_URL serves: ${failures.join('; ')}`
  return Object.assign(new Error(message), { code, errno, fatal }) as QueryError
}
