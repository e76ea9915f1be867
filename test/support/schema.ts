import { join } from 'node:path'
import type { TestDb } from './database.ts'
import { MYSQL } from './database-server.ts'

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

/** The same as text, a line for each column and key, as MariaDB writes it. */
export async function schemaText(db: Pick<TestDb, 'query'>): Promise<string> {
  const tables = Object.entries(await schemaOf(db))
  const write = MYSQL === null ? (line: string) => line : asMariadbWrites
  return tables.map(([name, lines]) => [name, ...lines.map((line) => `  ${write(line)}`), ''].join('\n')).join('\n')
}

const WIDTHS: Readonly<Record<string, number>> = { bigint: 20, int: 11, smallint: 6, tinyint: 4 }

/** MySQL leaves out the widths of numbers and the default of a text, quotes default numbers, and repeats the collation of the table. */
function asMariadbWrites(line: string): string {
  const column = line
    .replace(
      /^(`\w+`) (bigint|int|smallint|tinyint)\b/,
      (_line, name: string, type: string) => `${name} ${type}(${WIDTHS[type]})`,
    )
    .replace(/^(`\w+` .*?)(?: CHARACTER SET utf8mb4)? COLLATE utf8mb4_unicode_ci\b/, '$1')
    .replace('utf8mb4_0900_bin', 'utf8mb4_nopad_bin')
    .replace(/ DEFAULT '(\d+)'$/, ' DEFAULT $1')
  return /^`\w+` (medium|long)?(text|blob)\b/.test(column) && !/NOT NULL|DEFAULT/.test(column)
    ? `${column} DEFAULT NULL`
    : column
}
