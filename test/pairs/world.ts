import { createHash } from 'node:crypto'
import type { RowDataPacket } from 'mysql2'
import { createConnection, type Connection } from 'mysql2/promise'
import { testDatabase, urlOf } from '../support/database.ts'
import { TABLES } from '../support/tables.ts'

/** New rows get ids from here on, each table its own range: wherever such a number stands, it names a row. */
const FIRST_ID = 100_000_000_000_000
const RANGE = 1_000_000_000_000
const NEW_ID = /1\d{14}/g
/** Tokens are random. */
const TOKEN = /[0-9a-f]{32,}/g
/** Random values of columns that are no hexadecimal tokens. */
const RANDOM_COLUMNS = new Set(['transfer_code', 'lease'])

type Row = Readonly<Record<string, unknown>>

/** The counters of rows that serve as locks; work that runs again takes the lock again. */
const LOCK_COUNTER = 'version'

/** The rows of tables, as text: all of them, or those that were added (`+`) and taken away (`-`). */
export type State = ReadonlyMap<string, readonly string[]>

/** The rows of a prepared database, which are put back before each run. */
export class World {
  readonly #connection: Connection
  readonly #copy: string
  readonly #tables: readonly string[]
  #changed = new Set<string>()
  #kept: State = new Map()

  private constructor(connection: Connection, copy: string, tables: readonly string[]) {
    this.#connection = connection
    this.#copy = copy
    this.#tables = tables
  }

  /** Keeps a copy of the rows that are there, in a database beside. */
  static async keep(): Promise<World> {
    const { socketPath, name } = testDatabase()
    const copy = `${name}_pairs`
    const connection = await createConnection({
      uri: urlOf(socketPath, name),
      multipleStatements: true,
      dateStrings: true,
    })
    const tables = TABLES.map((table) => table.name)
    await connection.query(`DROP DATABASE IF EXISTS ${copy}; CREATE DATABASE ${copy}; SET foreign_key_checks = 0`)
    for (const [index, table] of tables.entries()) {
      await connection.query(
        `CREATE TABLE ${copy}.${table} LIKE ${table}; INSERT INTO ${copy}.${table} SELECT * FROM ${table}`,
      )
      if (await this.#hasId(connection, table))
        await connection.query(`ALTER TABLE ${table} AUTO_INCREMENT = ${FIRST_ID + index * RANGE}`)
    }
    const world = new World(connection, copy, tables)
    world.#kept = await world.#read(tables)
    return world
  }

  static async #hasId(connection: Connection, table: string): Promise<boolean> {
    const [rows] = await connection.query<RowDataPacket[]>(`SHOW COLUMNS FROM ${table} WHERE Extra = 'auto_increment'`)
    return rows.length > 0
  }

  /** Puts the rows back that runs have changed. */
  async restore(): Promise<void> {
    const statements = [...this.#changed].map(
      (table) => `DELETE FROM ${table}; INSERT INTO ${table} SELECT * FROM ${this.#copy}.${table};`,
    )
    if (statements.length > 0) await this.#connection.query(`START TRANSACTION; ${statements.join(' ')} COMMIT`)
    this.#changed = new Set()
  }

  noteChanged(tables: Iterable<string>): void {
    for (const table of tables) this.#changed.add(table)
  }

  /** What has changed since the rows were kept, without what may differ between two correct runs: ids and tokens of new rows, and their order. */
  async state(): Promise<State> {
    const read = await this.#read([...this.#changed].sort())
    const changes = [...read].map(([table, rows]) => [table, changesOf(this.#kept.get(table) ?? [], rows)] as const)
    return new Map(changes.filter(([, rows]) => rows.length > 0))
  }

  async #read(tables: readonly string[]): Promise<State> {
    const rows = new Map<string, readonly Row[]>()
    for (const table of tables) {
      const [found] = await this.#connection.query<RowDataPacket[]>(`SELECT * FROM ${table}`)
      rows.set(table, found)
    }
    const labels = new Labels(this.#tables, rows)
    return new Map(tables.map((table) => [table, (rows.get(table) ?? []).map((row) => labels.textOf(row)).sort()]))
  }

  /** Which of these connections wait for a lock; `INNODB_TRX` would be a tenth of a second old. */
  async waiting(): Promise<ReadonlySet<number>> {
    const [rows] = await this.#connection.query<RowDataPacket[]>('SHOW ENGINE INNODB STATUS')
    const transactions = String(rows[0]?.['Status']).split('---TRANSACTION ').slice(1)
    const threads = transactions
      .filter((text) => text.includes('LOCK WAIT'))
      .map((text) => Number(/thread id (\d+)/.exec(text)?.[1]))
    return new Set(threads)
  }

  /** Whether the server still has these connections; it rolls back what they began before it forgets them. */
  async has(threads: readonly number[]): Promise<boolean> {
    if (threads.length === 0) return false
    const [rows] = await this.#connection.query<RowDataPacket[]>(
      'SELECT id FROM information_schema.processlist WHERE id IN (?)',
      [threads],
    )
    return rows.length > 0
  }

  /** Empties the database, and lets its ids begin anew. */
  async drop(): Promise<void> {
    for (const table of this.#tables)
      await this.#connection.query(`DELETE FROM ${table}; ALTER TABLE ${table} AUTO_INCREMENT = 1`)
    await this.#connection.query(`DROP DATABASE ${this.#copy}`)
    await this.#connection.end()
  }
}

function changesOf(kept: readonly string[], rows: readonly string[]): string[] {
  return [...lacking(kept, rows).map((row) => `- ${row}`), ...lacking(rows, kept).map((row) => `+ ${row}`)]
}

/** Rows that the others lack, however many there are alike. */
function lacking(rows: readonly string[], others: readonly string[]): string[] {
  const counts = new Map<string, number>()
  for (const row of others) counts.set(row, (counts.get(row) ?? 0) + 1)
  return rows.filter((row) => {
    const left = counts.get(row) ?? 0
    counts.set(row, left - 1)
    return left <= 0
  })
}

/** Gives new rows names by what they hold, so that two runs that made the same rows show the same text. */
class Labels {
  readonly #tables: readonly string[]
  readonly #rows = new Map<string, Row>()
  readonly #labels = new Map<string, string>()

  constructor(tables: readonly string[], rows: ReadonlyMap<string, readonly Row[]>) {
    this.#tables = tables
    for (const row of [...rows.values()].flat()) this.#rows.set(String(row['id']), row)
  }

  textOf(row: Row): string {
    const own = String(row['id'])
    const columns = Object.entries(row).filter(([column]) => column !== LOCK_COUNTER)
    const shown = columns.map(([column, value]) => {
      if (RANDOM_COLUMNS.has(column)) return [column, value === null || value === 0 ? value : 'random']
      return [column, Buffer.isBuffer(value) ? value.toString('utf8') : value]
    })
    return JSON.stringify(shown)
      .replaceAll(TOKEN, 'token')
      .replaceAll(NEW_ID, (id) => (id === own ? 'own' : this.#labelOf(id)))
  }

  #labelOf(id: string): string {
    const known = this.#labels.get(id)
    if (known !== undefined) return known
    const table = this.#tables[Math.floor((Number(id) - FIRST_ID) / RANGE)] ?? '?'
    const row = this.#rows.get(id)
    // Rows that name each other meet this name.
    this.#labels.set(id, `${table} in a circle`)
    const label = row
      ? `${table} ${createHash('sha1').update(this.textOf(row)).digest('base64').slice(0, 10)}`
      : `no ${table}`
    this.#labels.set(id, label)
    return label
  }
}
