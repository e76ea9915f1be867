import type { AnyTable } from './tables.ts'
import type { TestDb } from './database.ts'

/** Works while the server refuses some rows of a table. `which` is a condition on the row, new and old: `NEW.http_status = 299`. */
export async function whileRefusing(
  { query }: TestDb,
  table: AnyTable,
  change: 'INSERT' | 'UPDATE',
  which: string,
  work: () => Promise<unknown>,
): Promise<void> {
  const refusal = `IF ${which} THEN SIGNAL SQLSTATE '45000'; END IF`
  await query(`CREATE TRIGGER refusing BEFORE ${change} ON ${table.name} FOR EACH ROW ${refusal}`)
  try {
    await work()
  } finally {
    await query('DROP TRIGGER refusing')
  }
}

/** Works while the database lacks a table. */
export async function whileLacking({ query }: TestDb, table: AnyTable, work: () => Promise<unknown>): Promise<void> {
  await query(`RENAME TABLE ${table.name} TO ${table.name}_away`)
  try {
    await work()
  } finally {
    await query(`RENAME TABLE ${table.name}_away TO ${table.name}`)
  }
}

/** Works with the name of the first migration, of which the database does not know that it ran. */
export async function whileUnmigrated({ query }: TestDb, work: (name: string) => Promise<unknown>): Promise<void> {
  const [row] = await query<{ id: number; timestamp: number; name: string }[]>(
    'SELECT id, timestamp, name FROM migrations ORDER BY id LIMIT 1',
  )
  const { id, timestamp, name } = row!
  await query('DELETE FROM migrations WHERE id = ?', [id])
  try {
    await work(name)
  } finally {
    await query('INSERT INTO migrations (id, timestamp, name) VALUES (?, ?, ?)', [id, timestamp, name])
  }
}
