import type { Queries } from '#db/queries.ts'
import type { Table } from '#db/table.ts'

const PART = 1000

/** Rows like this one, but for the id and what `changes` says of the nth, from 1. */
export function rowsLike<R extends { readonly id: number }>(
  row: R,
  count: number,
  changes: (n: number) => Partial<R> = () => ({}),
): Omit<R, 'id'>[] {
  // An undefined value is not sent, so that the table gives each row an id.
  return Array.from({ length: count }, (_, index) => ({ ...row, ...changes(index + 1), id: undefined }))
}

/** Inserts any number of rows, in parts that a server takes in time on a busy machine. */
export async function insertMany<R extends object>(
  db: Queries,
  table: Table<R>,
  rows: readonly Omit<NoInfer<R>, 'id'>[],
): Promise<void> {
  for (let first = 0; first < rows.length; first += PART) await db.insertAll(table, rows.slice(first, first + PART))
}
