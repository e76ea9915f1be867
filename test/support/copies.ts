import type { TestDb } from './database.ts'
import { sequence } from './sequence.ts'

const PART = 1000

/**
 * Copies the newest row of a table `count` times. `changes` has SQL for the columns that differ, in which `seq` counts
 * from 1; a column that `changes` does not name is as in that row, except the id.
 */
export async function copyRow(
  { query }: Pick<TestDb, 'query'>,
  table: string,
  count: number,
  changes: Readonly<Record<string, string>>,
  key = 'id',
): Promise<void> {
  const columns = await query<{ name: string }[]>(
    `SELECT column_name AS name FROM information_schema.columns
     WHERE table_schema = DATABASE() AND table_name = ?`,
    [table],
  )
  const names = columns.map(({ name }) => name).filter((name) => name !== 'id' || changes['id'] !== undefined)
  const values = names.map((name) => changes[name] ?? name)
  const [seed] = await query<{ value: number }[]>(`SELECT MAX(${key}) AS value FROM ${table}`)
  // In parts, each of which the server answers in time on a machine that is busy.
  for (let first = 1; first <= count; first += PART)
    await query(
      `INSERT INTO ${table} (${names.join(', ')})
       SELECT ${values.join(', ')} FROM (SELECT * FROM ${table} WHERE ${key} = ?) seed,
         ${sequence(first, Math.min(first + PART - 1, count))}`,
      [seed?.value],
    )
}
