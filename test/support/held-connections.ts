import type { DataSource, QueryRunner } from 'typeorm'
import { poolUse } from '#db/session.ts'

/** Takes connections until so many of the pool are in use; nobody else gets them until they are released. */
export async function takeConnections(db: DataSource, used: number): Promise<QueryRunner[]> {
  const taken: QueryRunner[] = []
  while (poolUse(db).used < used) {
    const runner = db.createQueryRunner()
    await runner.connect()
    taken.push(runner)
  }
  return taken
}
