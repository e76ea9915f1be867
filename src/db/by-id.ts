import type { Queries } from './queries.ts'
import type { Table } from './table.ts'

/** Reads the rows with these ids by one statement; returns those that exist, by id. */
export async function byId<R extends { readonly id: number }>(
  db: Queries,
  table: Table<R>,
  ids: readonly number[],
): Promise<Map<number, R>> {
  if (ids.length === 0) return new Map()
  return new Map((await db.all(table, 'WHERE id IN (?)', [[...new Set(ids)]])).map((row) => [row.id, row]))
}
