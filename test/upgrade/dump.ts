import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { readFileSync, writeFileSync } from 'node:fs'
import { createConnection, escape, escapeId, type Connection, type RowDataPacket } from 'mysql2/promise'
import { EXACT_COLLATION } from '../support/database-server.ts'
import type { Summary } from './year.ts'

/** Rows per statement: enough to load quickly, and few enough for the server's packet size. */
const ROWS = 100

interface DumpFiles {
  readonly sql: string
  readonly summary: string
}

/** The files of a dump; `version` is the number of the last migration in it. */
function filesOf(version: number): DumpFiles {
  const base = join(import.meta.dirname, `year-at-${version}`)
  return { sql: `${base}.sql.gz`, summary: `${base}.json.gz` }
}

/** Writes every table of the database at `url`, including those of the migrations, and its summary. */
export async function writeDump(url: string, version: number, summary: Summary): Promise<DumpFiles> {
  const files = filesOf(version)
  const connection = await createConnection({ uri: url, timezone: 'Z', dateStrings: true, supportBigNumbers: true })
  const statements: string[] = []
  for (const table of await column(connection, 'SHOW TABLES')) {
    const [[created]] = await connection.query<RowDataPacket[]>(`SHOW CREATE TABLE ${escapeId(table)}`)
    statements.push(String(created!['Create Table']))
    const [rows] = await connection.query<RowDataPacket[]>({
      sql: `SELECT * FROM ${escapeId(table)}`,
      rowsAsArray: true,
    })
    for (let from = 0; from < rows.length; from += ROWS) {
      const values = rows.slice(from, from + ROWS).map((row) => `(${escape(row)})`)
      statements.push(`INSERT INTO ${escapeId(table)} VALUES\n${values.join(',\n')}`)
    }
  }
  await connection.end()
  writeFileSync(files.sql, gzipSync(statements.map((statement) => `${statement};\n`).join(''), { level: 9 }))
  writeFileSync(files.summary, gzipSync(JSON.stringify(summary), { level: 9 }))
  return files
}

/** Loads a dump into the empty database at `url`. */
export async function loadDump(url: string, version: number): Promise<Summary> {
  const { sql, summary } = filesOf(version)
  const connection = await createConnection({ uri: url, multipleStatements: true })
  // The dump is of a MariaDB; the migrations give the texts of a MySQL its own collation.
  await connection.query(
    gunzipSync(readFileSync(sql)).toString('utf8').replaceAll('utf8mb4_nopad_bin', EXACT_COLLATION),
  )
  await connection.end()
  return JSON.parse(gunzipSync(readFileSync(summary)).toString('utf8')) as Summary
}

async function column(connection: Connection, sql: string): Promise<string[]> {
  const [rows] = await connection.query<RowDataPacket[]>(sql)
  return rows.map((row) => String(Object.values(row)[0]))
}
