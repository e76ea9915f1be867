import { inTransaction } from '#commands/transaction.ts'
import type { Context } from '#context.ts'
import { text } from '#db/columns.ts'
import type { Queries } from '#db/queries.ts'
import { shape } from '#db/table.ts'

/** What `read` returns, and how many rows of tables and indexes the database read for it. */
export async function rowsReadBy<T>(ctx: Context, read: (ctx: Context) => Promise<T>): Promise<[T, number]> {
  return inTransaction(ctx, async (tx) => {
    const before = await rowsRead(tx)
    // On the connection of the transaction, whose counters are compared.
    const found = await read({ ...ctx, db: { ...ctx.db, ...tx } })
    return [found, (await rowsRead(tx)) - before]
  })
}

async function rowsRead(db: Queries): Promise<number> {
  const counters = await db.all(shape({ Value: text() }), `SHOW SESSION STATUS LIKE 'Handler_read%'`)
  return counters.reduce((sum, { Value }) => sum + Number(Value), 0)
}
