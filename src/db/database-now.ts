import type { Clock, RealTime } from '#shared/time.ts'
import { realTime } from './columns.ts'
import type { Queries } from './queries.ts'
import { shape } from './table.ts'

/**
 * The current time by the database's clock, which all daemons share. Leases and due times of queues use it, so that a machine with a
 * wrong clock neither takes over running work nor postpones work. Costs a round trip.
 */
export async function databaseNow({ clock }: { readonly clock: Clock }, db: Queries): Promise<RealTime> {
  if (clock.database) return clock.database.now()
  return (await db.single(shape({ now: realTime() }), 'SELECT UTC_TIMESTAMP(3) AS now')).now
}

/** The current time by the database's clock as an SQL expression with the values of its `?`. Costs no round trip. */
export interface Present {
  readonly sql: string
  readonly params: readonly RealTime[]
}

export function databasePresent({ clock }: { readonly clock: Clock }): Present {
  return clock.database ? { sql: '?', params: [clock.database.now()] } : { sql: 'UTC_TIMESTAMP(3)', params: [] }
}
