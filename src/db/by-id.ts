import type { Queries } from './queries.ts'
import type { Table } from './table.ts'

/** The rows of a table by id, for lists that name them. */
export async function byId<R extends { readonly id: number }>(
  db: Queries,
  table: Table<R>,
  ids: readonly number[],
): Promise<Map<number, R>> {
  if (ids.length === 0) return new Map()
  return new Map((await db.all(table, 'WHERE id IN (?)', [[...new Set(ids)]])).map((row) => [row.id, row]))
}
