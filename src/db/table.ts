import { BoundedMap } from '#shared/bounded-map.ts'
import { endedEarly } from './database-error.ts'

/** How the database declares a column. */
export interface ColumnOptions {
  /** The property's name if absent. */
  readonly name?: string
  readonly type: string
  readonly length?: number
  readonly precision?: number
  readonly nullable?: boolean
  readonly primary?: boolean
  readonly generated?: 'increment'
}

type Convert = (value: unknown) => unknown

export interface Codec {
  /** Converts the driver's value to ours; absent if they are the same. Never called with null. */
  readonly decode?: Convert
  /** The reverse. Never called with null. */
  readonly encode?: Convert
  /** The SQL of an inserted value, with one `?`; absent for a plain `?`. */
  readonly insertedAs?: string
}

/** One column: how the database declares it, and how its values are converted. `T` is the type of its values here. */
export class Column<T> {
  /** Only for the type checker: the type of the column's values. */
  declare readonly value: T
  readonly options: ColumnOptions
  readonly codec: Codec

  constructor(options: ColumnOptions, codec: Codec = {}) {
    this.options = options
    this.codec = codec
  }

  nullable(): Column<T | null> {
    return new Column<T | null>({ ...this.options, nullable: true }, this.codec)
  }

  primary(): Column<T> {
    return new Column<T>({ ...this.options, primary: true }, this.codec)
  }

  /** The same column with a narrower type: `exact('status', 16).as<'active' | 'archived'>()`. */
  as<U extends T>(): Column<U> {
    return new Column<U>(this.options, this.codec)
  }
}

type Columns = Readonly<Record<string, Column<unknown>>>
/** The values of some columns: a row, or the part of a row that several tables have. */
export type Values<C extends Columns> = { [K in keyof C]: C[K] extends Column<infer T> ? T : never }

/** A source of rows. It completes a statement and decodes its rows. */
export interface Source<R> {
  /** The whole statement. */
  statement(text: string): string
  /** Converts a new row of the driver in place. */
  decode(row: Record<string, unknown>): R
}

/**
 * A table, defined once. The row type (`Row<typeof plans>`), the column list and the decoder come from it, and a test compares it with the
 * migrations. As a `Source` it takes the rest of the statement: `all(plans, 'WHERE app_id = ?', [appId])`.
 */
export interface Table<R> extends Source<R> {
  readonly name: string
  /** The database's name of each property's column. */
  readonly columns: ReadonlyMap<string, string>
  /** How the database declares each property's column. */
  readonly options: Readonly<Record<string, ColumnOptions>>
  /**
   * The table under an alias, for joins: `all(subscriptions.as('s'), 'JOIN apps a ON …')`. Where the statement must read another table
   * first, `first` names that one with its alias, and the rest of the statement joins this one.
   */
  as(alias: string, first?: string): Source<R>
  /** As `as`, with columns of joined tables: `one(subscriptions.joined('s', { planCode: exact('p.code', 64) }), 'JOIN plans p …')`. */
  joined<E extends Columns>(alias: string, others: E): Source<R & Values<E>>
  /** Some of the columns, for joins of many tables: each column of a result costs over a microsecond. */
  only<K extends Extract<keyof R, string>>(...properties: readonly K[]): Joinable<Pick<R, K>>
  /** The column of a property of the row. */
  columnOf(property: string): string
  /** Converts a value of the row to the driver's form. */
  encode(property: string, value: unknown): unknown
  /** The INSERT of rows that have these properties. */
  insertion(properties: readonly string[]): Insertion
  /** Only for the type checker: the type of a row. */
  readonly row: R
}

/** The texts of an INSERT. */
export interface Insertion {
  /** `INSERT INTO plans (code, name) VALUES`. */
  readonly into: string
  /** The values of one row: `(?, ?)`. */
  readonly marks: string
  /** Whether all of them are a plain `?`. */
  readonly isPlain: boolean
  /** The whole statement for one row. */
  readonly oneRow: string
}

/** The type of a row, of a table or of another source of rows: `Row<typeof plans>`. */
export type Row<T extends { decode(row: Record<string, unknown>): unknown }> = ReturnType<T['decode']>

/** Defines a table. A column whose options name none has the property's name. */
export function table<C extends Columns>(name: string, columns: C): Table<Values<C>> {
  const nameOf = namesOf(columns)
  const list = [...nameOf].map(([property, column]) => (property === column ? column : `${column} AS ${property}`))
  const select = `SELECT ${list.join(', ')} FROM ${name} `
  const columnOf = (property: string): string => {
    const column = nameOf.get(property)
    if (column === undefined) throw new Error(`${name} has no column for ${property}`)
    return column
  }
  const aliased = (alias: string, others: Columns, first = `${name} ${alias}`): Source<unknown> => {
    const own = [...nameOf].map(([property, column]) => `${alias}.${column} AS ${property}`)
    const joined = [...namesOf(others)].map(([property, column]) => `${column} AS ${property}`)
    const list = `SELECT ${[...own, ...joined].join(', ')} FROM ${first} `
    return { statement: keptTexts(list), decode: decoderOf({ ...columns, ...others }) }
  }
  const defined: Omit<Table<Values<C>>, 'row'> = {
    name,
    columns: nameOf,
    options: Object.fromEntries(Object.entries(columns).map(([property, { options }]) => [property, options])),
    columnOf,
    statement: keptTexts(select),
    decode: decoderOf(columns) as Table<Values<C>>['decode'],
    only: (...properties) => ({
      columns: new Map(properties.map((property) => [property, columnOf(property)])),
      decode: decoderOf(
        Object.fromEntries(
          Object.entries(columns).filter(([property]) => (properties as readonly string[]).includes(property)),
        ),
      ) as never,
    }),
    as: (alias, first) => aliased(alias, {}, first) as Source<Values<C>>,
    joined: <E extends Columns>(alias: string, others: E) => aliased(alias, others) as Source<Values<C> & Values<E>>,
    encode: (property, value) => {
      const encode = columns[property]?.codec.encode
      return value === null || !encode ? value : encode(value)
    },
    insertion: keptInsertions((properties) => {
      const marks = properties.map((property) => columns[property]?.codec.insertedAs ?? '?')
      const into = `INSERT INTO ${name} (${properties.map(columnOf).join(', ')}) VALUES`
      const row = `(${marks.join(', ')})`
      return { into, marks: row, isPlain: marks.every((mark) => mark === '?'), oneRow: `${into} ${row}` }
    }),
  }
  return defined as Table<Values<C>>
}

/** The result of a statement that does not return whole rows of one table. The statement is complete and aliases its columns to these names. */
export function shape<C extends Columns>(columns: C): Source<Values<C>> {
  return { statement: (text) => text, decode: decoderOf(columns) as Source<Values<C>>['decode'] }
}

/** Per table. Statements with lists have many texts. */
const MAX_TEXTS = 100

type Rows<T extends Tables> = { [K in keyof T]: ReturnType<T[K]['decode']> }
type Tables = Readonly<Record<string, Joinable<unknown>>>
/** The part of a table that `joinedRows` needs. */
type Joinable<R> = Pick<Table<R>, 'columns' | 'decode'>

/**
 * Rows of several tables, read by one statement. `from` joins the tables, each under the name of its row in the result. A row of `optional`
 * is null if its LEFT JOIN found none. `computed` has columns whose names are SQL expressions.
 */
export function joinedRows<T extends Tables, O extends Tables, C extends Columns>(
  from: string,
  tables: T,
  optional: O,
  computed: C,
): Source<Rows<T> & { [K in keyof O]: ReturnType<O[K]['decode']> | null } & Values<C>> {
  const parts = Object.entries({ ...tables, ...optional }).map(([name, { columns, decode }]) => {
    const fields = [...columns].map(
      ([property, column]) => [property, `${name}$${property}`, `${name}.${column}`] as const,
    )
    return { name, fields, decode, isOptional: name in optional }
  })
  const list = parts.flatMap(({ fields }) => fields.map(([, alias, column]) => `${column} AS ${alias}`))
  const expressions = namesOf(computed)
  const decodeComputed = decoderOf(computed)
  for (const [property, expression] of expressions) list.push(`${expression} AS ${property}`)
  return {
    statement: keptTexts(`SELECT ${list.join(', ')} FROM ${from} `),
    decode: (row) => {
      const rows: Record<string, unknown> = {}
      for (const property of expressions.keys()) rows[property] = row[property]
      decodeComputed(rows)
      for (const { name, fields, decode, isOptional } of parts) {
        if (isOptional && row[`${name}$id`] === null) {
          rows[name] = null
          continue
        }
        const own: Record<string, unknown> = {}
        for (const [property, alias] of fields) own[property] = row[alias]
        rows[name] = decode(own)
      }
      return rows as never
    },
  }
}

/** Returns the same string object for equal texts, so that caches find it without comparing characters. */
function keptTexts(head: string): (rest: string) => string {
  const kept = new BoundedMap<string, string>(MAX_TEXTS)
  return (rest) => kept.getOrCreate(rest, () => head + rest)
}

/** Makes the texts for the same properties once. */
function keptInsertions(make: (properties: readonly string[]) => Insertion): Table<unknown>['insertion'] {
  const kept = new Map<string, Insertion>()
  return (properties) => {
    const key = properties.join()
    const found = kept.get(key) ?? make(properties)
    kept.set(key, found)
    return found
  }
}

/** The database's name of each property. */
function namesOf(columns: Columns): ReadonlyMap<string, string> {
  return new Map(Object.entries(columns).map(([property, { options }]) => [property, options.name ?? property]))
}

/**
 * Converts only the columns whose values differ from the driver's. Throws if a column that is never NULL has no value: the server may answer
 * a killed statement as if a subquery had found nothing (DECISIONS 66).
 */
function decoderOf(columns: Columns): (row: Record<string, unknown>) => unknown {
  const entries = Object.entries(columns)
  const neverNull = entries.flatMap(([property, { options }]) => (options.nullable ? [] : [property]))
  const converted = entries.flatMap(([property, { codec }]): [string, Convert][] =>
    codec.decode ? [[property, codec.decode]] : [],
  )
  return (row) => {
    for (const property of neverNull) if (row[property] === null) throw endedEarly(property)
    for (const [property, decode] of converted) {
      const value = row[property]
      if (value !== null) row[property] = decode(value)
    }
    return row
  }
}
