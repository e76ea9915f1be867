import { bigint } from './columns.ts'
import { endedEarly } from './database-error.ts'
import { shape, type Source, type Table } from './table.ts'

/** SQL text with the values of its `?`. */
export interface Sql {
  readonly sql: string
  readonly params: readonly Param[]
}

/** The value of a `?`. A list gives the values of an `IN (?)`; a list of lists gives the rows of a `VALUES ?`. */
export type Param = string | number | boolean | Date | Buffer | null | readonly Param[]

/** The server's answer to a statement that changes rows. */
export interface Changed {
  /** Rows that matched the WHERE, changed or not. */
  readonly affectedRows: number
  readonly insertId: number | string
}

/** The only interface to the database: statements on the pool (`ctx.db`), or on the connection of a transaction (`tx`). */
export interface Queries {
  /** The first row, or null. */
  one<R>(source: Source<R>, text: string, params?: readonly Param[]): Promise<R | null>
  /** The row of a statement that always returns exactly one, such as a total. Throws a retryable error if it was killed and returned none. */
  single<R>(source: Source<R>, text: string, params?: readonly Param[]): Promise<R>
  all<R>(source: Source<R>, text: string, params?: readonly Param[]): Promise<R[]>
  /** The number of matching rows. */
  count<R>(table: Table<R>, text: string, params?: readonly Param[]): Promise<number>
  /** Runs a statement that changes rows; returns how many matched its WHERE. */
  run(sql: string, params?: readonly Param[]): Promise<number>
  /**
   * Adds 1 to a counter of the row that matches `where`, which locks the row until the transaction ends. Returns its id; null if no row
   * matches.
   */
  bump<R extends object>(
    table: Table<R>,
    counter: keyof NoInfer<R>,
    where: RowMatch<NoInfer<R>>,
  ): Promise<number | null>
  /** Inserts a row; returns its id, 0 if the table generates none. */
  insert<R extends object>(table: Table<R>, row: Omit<NoInfer<R>, 'id'>): Promise<number>
  /** Inserts several rows. If the table has a `dueTime`, pass few: each number of rows is another prepared statement. */
  insertAll<R extends object>(table: Table<R>, rows: readonly Omit<NoInfer<R>, 'id'>[]): Promise<void>
  /** Changes the rows that match `where`; returns how many matched. */
  update<R extends object>(table: Table<R>, where: RowMatch<NoInfer<R>>, changes: Partial<NoInfer<R>>): Promise<number>
}

/** The values that rows must have: a value, null, or any of a list. An empty list matches no row. */
export type RowMatch<R> = { readonly [K in keyof R]?: R[K] | readonly R[K][] }

/** Sends one statement; resolves with the rows of a SELECT, or `Changed`. */
export type Send = (sql: string, params: readonly Param[]) => Promise<unknown>

const COUNT = shape({ count: bigint() })

export function queriesOver(send: Send): Queries {
  const all = async <R>(source: Source<R>, text: string, params: readonly Param[] = []): Promise<R[]> => {
    const rows = (await send(source.statement(text), params)) as Record<string, unknown>[]
    return rows.map((row) => source.decode(row))
  }
  const single = async <R>(source: Source<R>, text: string, params?: readonly Param[]): Promise<R> => {
    const [row] = await all(source, text, params)
    if (!row) throw endedEarly('its row')
    return row
  }
  const run = async (sql: string, params: readonly Param[] = []): Promise<number> =>
    affectedRows(await send(sql, params))
  return {
    all,
    run,
    bump: async (table, counter, where) => {
      const matching = conditionsOf(table, where)
      const column = table.columnOf(counter as string)
      // LAST_INSERT_ID returns the id with the answer, which saves a read.
      const sql = `UPDATE ${table.name} SET ${column} = ${column} + 1, id = LAST_INSERT_ID(id) WHERE ${matching.sql}`
      const changed = (await send(sql, matching.params)) as Changed
      return changed.affectedRows === 0 ? null : insertedId(changed)
    },
    count: async (table, text, params) =>
      (await single(COUNT, `SELECT COUNT(*) AS count FROM ${table.name} ${text}`, params)).count,
    one: async (source, text, params) => (await all(source, text, params))[0] ?? null,
    single,
    insert: async (table, row) => {
      const { properties, values } = valuesOf(table, row)
      return insertedId((await send(table.insertion(properties).oneRow, values)) as Changed)
    },
    insertAll: async (table, rows) => {
      const [first] = rows
      if (!first) return
      const { into, marks, isPlain } = table.insertion(valuesOf(table, first).properties)
      const values = rows.map((row) => valuesOf(table, row).values)
      if (isPlain) await send(`${into} ?`, [values])
      else await send(`${into} ${rows.map(() => marks).join(', ')}`, values.flat())
    },
    update: async (table, where, changes) => {
      const update = updateOf(table, where, changes)
      return update ? run(update.sql, update.params) : 0
    },
  }
}

/** Null if no row can match. */
function updateOf<R>(table: Table<R>, where: RowMatch<R>, changes: object): Sql | null {
  const set = valuesOf(table, changes)
  if (set.properties.length === 0) throw new Error(`an update of ${table.name} changes nothing`)
  const found = conditionsOf(table, where)
  if (found.params.some((value) => Array.isArray(value) && value.length === 0)) return null
  const assignments = set.properties.map((property) => `${table.columnOf(property)} = ?`)
  return {
    sql: `UPDATE ${table.name} SET ${assignments.join(', ')} WHERE ${found.sql}`,
    params: [...set.values, ...found.params],
  }
}

function conditionsOf<R>(table: Table<R>, where: RowMatch<R>): Sql {
  const { properties, values } = valuesOf(table, where, encodeSought)
  if (properties.length === 0) throw new Error(`an update of ${table.name} names no row`)
  const conditions = properties.map((property, index) => `${table.columnOf(property)} ${comparisonWith(values[index])}`)
  return { sql: conditions.join(' AND '), params: values.filter((value) => value !== null) }
}

function affectedRows(result: unknown): number {
  return (result as Changed).affectedRows
}

function comparisonWith(value: Param | undefined): string {
  if (value === null) return 'IS NULL'
  return Array.isArray(value) ? 'IN (?)' : '= ?'
}

type Encode = <R>(table: Table<R>, property: string, value: unknown) => unknown

const encodeValue: Encode = (table, property, value) => table.encode(property, value)

/** Encodes a value, or each value of a list. */
const encodeSought: Encode = (table, property, value) =>
  Array.isArray(value) ? value.map((each) => table.encode(property, each)) : table.encode(property, value)

/** The defined properties, and their values in the driver's form. */
function valuesOf<R>(
  table: Table<R>,
  row: object,
  encode: Encode = encodeValue,
): { properties: string[]; values: Param[] } {
  const properties: string[] = []
  const values: Param[] = []
  for (const property of Object.keys(row)) {
    const value = (row as Readonly<Record<string, unknown>>)[property]
    if (value === undefined) continue
    properties.push(property)
    values.push(encode(table, property, value) as Param)
  }
  return { properties, values }
}

function insertedId({ insertId }: Changed): number {
  const id = Number(insertId)
  if (!Number.isSafeInteger(id)) throw new Error('the database returned an id that a number cannot represent exactly')
  return id
}
