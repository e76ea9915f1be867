import type { Database } from '#db/connect.ts'
import { queriesOver, type Queries } from '#db/queries.ts'

/** A connection of the pool that nobody else gets until it is released. */
export interface HeldConnection {
  release(): void
}

/** Takes all connections of the pool but `left`. */
export async function takeConnections({ pool }: Database, left = 0): Promise<HeldConnection[]> {
  const held: HeldConnection[] = []
  while (pool.counts.used < pool.counts.limit - left) {
    const connection = await pool.take()
    held.push({ release: () => pool.release(connection) })
  }
  return held
}

/** A transaction outside `inTransaction`, which a test can keep open. */
export interface Rival extends Queries {
  rollback(): Promise<void>
}

export async function startRival({ pool }: Database): Promise<Rival> {
  const connection = await pool.take()
  await connection.command('START TRANSACTION')
  return {
    ...queriesOver(connection.send),
    rollback: async () => {
      await connection.command('ROLLBACK')
      pool.release(connection)
    },
  }
}
