import type { PoolConnection } from 'mysql2'
import type { Database } from '#db/connect.ts'
import { takeConnection } from '#db/mysql-adapter.ts'
import { poolUse } from '#db/session.ts'

/** Takes connections until this many of the pool are in use. They stay in use until they are released. */
export async function takeConnections(db: Database, used: number): Promise<PoolConnection[]> {
  const taken: PoolConnection[] = []
  while (poolUse(db.pool).used < used) taken.push(await takeConnection(db.pool))
  return taken
}
