import type { Database } from '#db/connect.ts'

/** A connection of the pool that nobody else gets until it is released. */
export interface HeldConnection {
  release(): void
}

/** Takes connections until this many of the pool are in use. */
export async function takeConnections({ pool }: Database, used: number): Promise<HeldConnection[]> {
  const held: HeldConnection[] = []
  while (pool.counts.used < used) {
    const connection = await pool.take()
    held.push({ release: () => pool.release(connection) })
  }
  return held
}
