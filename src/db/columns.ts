import type { EntitySchemaColumnOptions, QueryRunner, ValueTransformer } from 'typeorm'

/** BIGINT in the database, a safe integer here: what a number cannot hold exactly is refused, in both directions. */
const safeInteger: ValueTransformer = {
  to: (value: unknown) => {
    if (typeof value === 'number' && !Number.isSafeInteger(value)) throw new Error('not a safe integer')
    return value
  },
  from: (value: unknown) => {
    if (value === null || value === undefined) return value
    const number = Number(value)
    if (!Number.isSafeInteger(number))
      throw new Error('the database holds an integer beyond what a number holds exactly')
    return number
  },
}

type Column = EntitySchemaColumnOptions

/** The primary key of every table with one column. */
export const id: Column = { type: 'bigint', primary: true, generated: 'increment', transformer: safeInteger }

export const bigint = (name: string): Column => ({ name, type: 'bigint', transformer: safeInteger })
export const int = (name: string): Column => ({ name, type: 'int' })
/** A column whose texts are compared byte for byte: codes, tokens, references. */
export const exact = (name: string, length: number): Column => ({ name, type: 'varchar', length })
/** A column for people's words. */
export const words = (name: string, length: number): Column => ({ name, type: 'varchar', length })
export const longtext = (name: string): Column => ({ name, type: 'text' })
export const bytes = (name: string): Column => ({ name, type: 'mediumblob' })
export const flag = (name: string): Column => ({
  name,
  type: 'tinyint',
  transformer: {
    to: (value: unknown) => (typeof value === 'boolean' ? Number(value) : value),
    from: (value: unknown) => Number(value) === 1,
  },
})
/** UTC, with milliseconds. */
export const instant = (name: string): Column => ({ name, type: 'datetime', precision: 3 })
/** JSON text; kept as text so that MariaDB and MySQL agree. */
export const json = (name: string): Column => ({
  name,
  type: 'text',
  transformer: {
    to: (value: unknown) =>
      value === null || value === undefined || isOperator(value) ? value : JSON.stringify(value),
    from: (value: unknown) => (typeof value === 'string' ? (JSON.parse(value) as unknown) : value),
  },
})
export const nullable = (column: Column): Column => ({ ...column, nullable: true })

function isOperator(value: unknown): boolean {
  return typeof value === 'function'
}

/** The collation that compares byte for byte and minds trailing blanks; each server family has its own. */
export async function exactCollation(runner: QueryRunner): Promise<string> {
  const [row] = (await runner.query('SELECT VERSION() AS version')) as { version: string }[]
  return row?.version.includes('MariaDB') ? 'utf8mb4_nopad_bin' : 'utf8mb4_0900_bin'
}
