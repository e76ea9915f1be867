import type { AppTime, RealTime } from '#shared/time.ts'
import { Column, type Codec } from './table.ts'

/** BIGINT in the database, a safe integer here. Throws, in both directions, for a value that a number does not hold exactly. */
const safeInteger = {
  encode: (value: unknown) => {
    if (!Number.isSafeInteger(value)) throw new Error('not a safe integer')
    return value
  },
  // The driver returns text if a number is not exact, and for the type of sums.
  decode: (value: unknown) => {
    const number = typeof value === 'number' ? value : Number(value)
    if (!Number.isSafeInteger(number))
      throw new Error('the database returned an integer that a number cannot represent exactly')
    return number
  },
}

/** The primary key of every table with one column. */
export const id = (): Column<number> =>
  new Column<number>({ type: 'bigint', primary: true, generated: 'increment' }, safeInteger)
/** An integer of 64 bits; also a count in a `shape`. */
export const bigint = (name?: string): Column<number> =>
  new Column<number>(named(name, { type: 'bigint' }), safeInteger)
/** A sum over any number of rows in a `shape`: exact, however large. */
export const sum = (): Column<bigint> =>
  new Column<bigint>({ type: 'decimal' }, { decode: (value) => BigInt(value as number | string) })
export const int = (name?: string): Column<number> => new Column<number>(named(name, { type: 'int' }))
/** Codes, tokens and references. `exact` documents the collation that the migration sets: it compares byte for byte. */
export const exact = (name: string, length: number): Column<string> =>
  new Column<string>({ name, type: 'varchar', length })
/** Text that people wrote. `words` documents that the migration keeps the default collation, which ignores case and accents. */
export const words = (name: string, length: number): Column<string> =>
  new Column<string>({ name, type: 'varchar', length })
/** A long text; without a name, the text of a computed column of a `shape`. */
export const text = (name?: string): Column<string> => new Column<string>(named(name, { type: 'text' }))
export const bytes = (name?: string): Column<Buffer> => new Column<Buffer>(named(name, { type: 'mediumblob' }))
export const flag = (name?: string): Column<boolean> =>
  new Column<boolean>(named(name, { type: 'tinyint' }), {
    encode: (value) => Number(value),
    decode: (value) => Number(value) === 1,
  })
/** An instant of the app's own time: UTC, with milliseconds. */
export const appTime = (name?: string): Column<AppTime> => instant<AppTime>(name)
/** An instant of the real time: UTC, with milliseconds. */
export const realTime = (name?: string): Column<RealTime> => instant<RealTime>(name)
/** A due time that our own clock gives: due at once for every daemon, even if that clock is ahead of the database's. */
export const AT_ONCE = 'LEAST(?, UTC_TIMESTAMP(3))'
/** When a row of a queue is due, in real time. New rows are due at once: an INSERT writes no later time than the database's own. */
export const dueTime = (name: string): Column<RealTime> => instant<RealTime>(name, { insertedAs: AT_ONCE })
/** JSON text; kept as text so that MariaDB and MySQL agree. */
export const json = <T>(name: string): Column<T> =>
  new Column<T>(
    { name, type: 'text' },
    { encode: (value) => JSON.stringify(value), decode: (value) => JSON.parse(value as string) as unknown },
  )

function instant<T extends Date>(name: string | undefined, codec: Codec = {}): Column<T> {
  return new Column<T>(named(name, { type: 'datetime', precision: 3 }), codec)
}

function named<O extends object>(name: string | undefined, options: O): O & { name?: string } {
  return name === undefined ? options : { ...options, name }
}
