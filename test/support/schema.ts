import { join } from 'node:path'
import type { TestDb } from './database.ts'

/** What the migrations make, as `test/write-schema.ts` wrote it. */
export const SCHEMA_FILE = join(import.meta.dirname, '..', 'schema.txt')

/**
 * The lines of each table's definition, sorted, so that the order in which columns and keys were added does not matter. Without TypeORM's
 * own table, whose texts are in the default character set of the database.
 */
export async function schemaOf({ query }: Pick<TestDb, 'query'>): Promise<Record<string, string[]>> {
  const rows = await query<object[]>("SHOW FULL TABLES WHERE table_type = 'BASE TABLE'")
  const names = rows.map((row) => String(Object.values(row)[0])).filter((name) => name !== 'migrations')
  const definitions = await Promise.all(
    names.map(async (name) => {
      const [created] = await query<{ 'Create Table': string }[]>(`SHOW CREATE TABLE ${name}`)
      const [, ...lines] = created!['Create Table'].replace(/ AUTO_INCREMENT=\d+/, '').split('\n')
      return [name, lines.map((line) => line.trim().replace(/,$/, '')).sort()] as const
    }),
  )
  return Object.fromEntries(definitions)
}

/** The same as text, a line for each column and key. */
export async function schemaText(db: Pick<TestDb, 'query'>): Promise<string> {
  const tables = Object.entries(await schemaOf(db))
  return tables.map(([name, lines]) => [name, ...lines.map((line) => `  ${line}`), ''].join('\n')).join('\n')
}
