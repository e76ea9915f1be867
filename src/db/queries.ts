import type { Source, Table } from './table.ts'

/** A value of a statement's `?`. A list stands for the values of an `IN (?)`, or, of lists, for the rows of a `VALUES ?`. */
export type Param = string | number | boolean | Date | Buffer | null | readonly Param[]

/** What the server answers to a statement that changes something. */
export interface Changed {
  /** Rows that the WHERE found, changed or not. */
  readonly affectedRows: number
  readonly insertId: number | string
}

/** The only interface to the database: statements on the pool (`ctx.db`), or on the one connection of a transaction (`tx`). */
export interface Queries {
  /** The first row, or null. */
  one<R>(source: Source<R>, text: string, params?: readonly Param[]): Promise<R | null>
  all<R>(source: Source<R>, text: string, params?: readonly Param[]): Promise<R[]>
  /** How many rows there are. */
  count<R>(table: Table<R>, text: string, params?: readonly Param[]): Promise<number>
  /** Runs a statement that changes rows; returns how many its WHERE found. */
  run(sql: string, params?: readonly Param[]): Promise<number>
  /** Runs an UPDATE of one row that sets `id = LAST_INSERT_ID(id)`; returns the row's id, null where its WHERE found none. */
  touch(sql: string, params?: readonly Param[]): Promise<number | null>
  /** Returns the new row's id; 0 if the table generates none. `sql` replaces the `?` of some values: `{ dueAt: 'LEAST(?, …)' }`; a value whose expression has none is not sent. */
  insert<R extends object>(
    table: Table<R>,
    row: Omit<NoInfer<R>, 'id'>,
    sql?: { readonly [K in keyof NoInfer<R>]?: string },
  ): Promise<number>
  /**
   * Inserts a row whose id is not needed yet. A transaction sends it with the next statement whose answer is waited for, and fails where
   * it does, with the error that `translate` makes of the database's.
   */
  add<R extends object>(
    table: Table<R>,
    row: Omit<NoInfer<R>, 'id'>,
    sql?: { readonly [K in keyof NoInfer<R>]?: string },
    translate?: (error: Error) => Error,
  ): Promise<NewId>
  /** As `insert`, for a few rows where `sql` is given: each number of rows is a statement of its own. */
  insertAll<R extends object>(
    table: Table<R>,
    rows: readonly Omit<NoInfer<R>, 'id'>[],
    sql?: { readonly [K in keyof NoInfer<R>]?: string },
  ): Promise<void>
  /** Changes the rows that are as `where` says; returns how many there are. */
  update<R extends object>(table: Table<R>, where: Where<NoInfer<R>>, changes: Partial<NoInfer<R>>): Promise<number>
  /** Changes the one row that is as `where` says; is sent as by `add`. Where there is none, the transaction fails with what `otherwise` makes. */
  updateOne<R extends object>(
    table: Table<R>,
    where: Where<NoInfer<R>>,
    changes: Partial<NoInfer<R>>,
    otherwise: () => Error,
  ): Promise<void>
}

/** The id of a row that is sent with the next statement. */
export interface NewId {
  /** Throws until the server has answered: `tx.settle()` waits for that. */
  readonly value: number
}

/** What rows must equal: a value; one of a list, where an empty list matches no row; or null. */
export type Where<R> = { readonly [K in keyof R]?: R[K] | readonly R[K][] }

/** Sends one statement: rows of a SELECT, `Changed` of any other. */
export type Send = (sql: string, params: readonly Param[]) => Promise<unknown>

/** Sends one statement, now or with the next one, and has its answer checked when it comes, or its error translated. */
export type Defer = (
  sql: string,
  params: readonly Param[],
  check: (result: unknown) => void,
  translate?: (error: Error) => Error,
) => Promise<void>

export function queriesOver(send: Send, defer: Defer = deferNothing(send)): Queries {
  const all = async <R>(source: Source<R>, text: string, params: readonly Param[] = []): Promise<R[]> => {
    const rows = (await send(source.statement(text), params)) as Record<string, unknown>[]
    return rows.map((row) => source.decode(row))
  }
  const run = async (sql: string, params: readonly Param[] = []): Promise<number> =>
    affectedRows(await send(sql, params))
  return {
    all,
    run,
    touch: async (sql, params = []) => {
      const changed = (await send(sql, params)) as Changed
      return changed.affectedRows === 0 ? null : insertedId(changed)
    },
    count: async (table, text, params = []) => {
      const [row] = (await send(`SELECT COUNT(*) AS count FROM ${table.name} ${text}`, params)) as { count: number }[]
      return row?.count ?? 0
    },
    one: async (source, text, params) => (await all(source, text, params))[0] ?? null,
    insert: async (table, row, sql) => {
      const { text, values } = insertOf(table, row, sql)
      return insertedId((await send(text, values)) as Changed)
    },
    add: async (table, row, sql, translate) => {
      const { text, values } = insertOf(table, row, sql)
      const added = new AddedRow()
      await defer(text, values, (result) => (added.answer = result as Changed), translate)
      return added
    },
    insertAll: async (table, rows, sql?: Expressions) => {
      const [first] = rows
      if (!first) return
      const { properties } = valuesOf(table, first)
      const columns = properties.map((property) => table.columnOf(property)).join(', ')
      const values = rows.map((row) => valuesOf(table, row).values)
      const marks = sql && `(${properties.map((property) => sql[property] ?? '?').join(', ')})`
      await send(
        `INSERT INTO ${table.name} (${columns}) VALUES ${marks ? rows.map(() => marks).join(', ') : '?'}`,
        marks ? values.flat() : [values],
      )
    },
    update: async (table, where, changes) => {
      const filled = updateOf(table, where, changes)
      return filled ? run(filled.text, filled.values) : 0
    },
    updateOne: async (table, where, changes, otherwise) => {
      const filled = updateOf(table, where, changes)
      if (!filled) throw otherwise()
      await defer(filled.text, filled.values, (result) => {
        if (affectedRows(result) !== 1) throw otherwise()
      })
    },
  }
}

function deferNothing(send: Send): Defer {
  return async (sql, params, check, translate) => {
    const result = await send(sql, params).catch((error: unknown) => {
      throw translate ? translate(error as Error) : error
    })
    check(result)
  }
}

class AddedRow implements NewId {
  answer: Changed | null = null

  get value(): number {
    if (!this.answer) throw new Error('the id of a new row was asked for before the row was sent')
    return insertedId(this.answer)
  }
}

/** What stands in the place of a property's `?`. */
type Expressions = Readonly<Partial<Record<string, string>>>

/** The id of the row that the session inserted last. */
export const LAST_ID = 'LAST_INSERT_ID()'

/** A statement and the values of its `?`. */
interface Filled {
  readonly text: string
  readonly values: Param[]
}

function insertOf<R>(table: Table<R>, row: object, sql: Expressions = {}): Filled {
  const { properties, values } = valuesOf(table, row)
  const text = textOf(table, `insert ${properties.join()} ${Object.values(sql).join()}`, () => {
    const columns = properties.map((property) => table.columnOf(property))
    const marks = properties.map((property) => sql[property] ?? '?')
    return `INSERT INTO ${table.name} (${columns.join(', ')}) VALUES (${marks.join(', ')})`
  })
  const isSent = (_value: Param, index: number): boolean => sql[properties[index] ?? '']?.includes('?') !== false
  return { text, values: Object.keys(sql).length === 0 ? values : values.filter(isSent) }
}

/** Null if no row can be so. */
function updateOf<R>(table: Table<R>, where: Where<R>, changes: object): Filled | null {
  const set = valuesOf(table, changes)
  if (set.properties.length === 0) throw new Error(`an update of ${table.name} changes nothing`)
  const found = valuesOf(table, where, encodeSought)
  if (found.properties.length === 0) throw new Error(`an update of ${table.name} names no row`)
  if (found.values.some((value) => Array.isArray(value) && value.length === 0)) return null
  const comparisons = found.values.map(comparisonWith)
  const name = `update ${set.properties.join()} ${found.properties.join()} ${comparisons.join()}`
  const text = textOf(table, name, () => {
    const assignments = set.properties.map((property) => `${table.columnOf(property)} = ?`)
    const conditions = found.properties.map((property, index) => `${table.columnOf(property)} ${comparisons[index]}`)
    return `UPDATE ${table.name} SET ${assignments.join(', ')} WHERE ${conditions.join(' AND ')}`
  })
  return { text, values: [...set.values, ...found.values.filter((value) => value !== null)] }
}

function affectedRows(result: unknown): number {
  return (result as Changed).affectedRows
}

/** By table and name. Made once, a text is the same string each time, and what is kept by it is found without reading it. */
const texts = new WeakMap<object, Map<string, string>>()

function textOf(table: object, name: string, make: () => string): string {
  let ofTable = texts.get(table)
  if (!ofTable) texts.set(table, (ofTable = new Map<string, string>()))
  let text = ofTable.get(name)
  if (text === undefined) ofTable.set(name, (text = make()))
  return text
}

function comparisonWith(value: Param): string {
  if (value === null) return 'IS NULL'
  return Array.isArray(value) ? 'IN (?)' : '= ?'
}

type Encode = <R>(table: Table<R>, property: string, value: unknown) => unknown

const encodeValue: Encode = (table, property, value) => table.encode(property, value)

/** Of a list, each of its values. */
const encodeSought: Encode = (table, property, value) =>
  Array.isArray(value) ? value.map((each) => table.encode(property, each)) : table.encode(property, value)

/** The properties that are given, and their values as the driver takes them. */
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
