import { openDatabase } from '#db/connect.ts'
import type { Connection } from '#db/connection.ts'
import type { TestContext } from '../support/context.ts'
import { testDatabase } from '../support/database.ts'

/** One statement, and what it cost by the server's own counters. */
export interface Measured {
  readonly sql: string
  /** Rows of tables and indexes that it read. */
  readonly read: number
  /** Rows that it returned or changed. */
  readonly found: number
}

export interface Measuring {
  /** Since the last call. */
  take(): Measured[]
  close(): Promise<void>
}

/** Measures each statement that the context sends from now on. */
export async function measureStatements(ctx: TestContext): Promise<Measuring> {
  const seen: Measured[] = []
  const before = ctx.db
  const { db, close } = await openDatabase({ databaseUrl: testDatabase().url, home: '' }, { statementSeconds: 30 })
  const take = db.pool.take.bind(db.pool)
  const known = new WeakSet<Connection>()
  Object.assign(db.pool, {
    take: async () => {
      const connection = await take()
      if (!known.has(connection)) await measure(connection, (statement) => seen.push(statement))
      known.add(connection)
      return connection
    },
  })
  Object.assign(ctx, { db: { ...db, query: before.query } })
  return {
    take: () => seen.splice(0),
    async close() {
      Object.assign(ctx, { db: before })
      await close()
    },
  }
}

async function measure(connection: Connection, note: (statement: Measured) => void): Promise<void> {
  const send = connection.send
  const first = await rowsRead(connection)
  const ofCounting = (await rowsRead(connection)) - first
  Object.assign(connection, {
    send: async (...[sql, params]: Parameters<typeof send>) => {
      const from = await rowsRead(connection)
      const result = await send(sql, params)
      const read = (await rowsRead(connection)) - from - ofCounting
      note({ sql: sql.replace(/\s+/g, ' '), read, found: countOf(result) })
      return result
    },
  })
}

function countOf(result: unknown): number {
  return Array.isArray(result) ? result.length : (result as { readonly affectedRows: number }).affectedRows
}

async function rowsRead(connection: Connection): Promise<number> {
  const counters = (await connection.command(`SHOW SESSION STATUS LIKE 'Handler_read%'`)) as { Value: string }[]
  return counters.reduce((sum, { Value }) => sum + Number(Value), 0)
}
