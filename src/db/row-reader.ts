import type { EntitySchema, ObjectLiteral, ValueTransformer } from 'typeorm'

/** Reads rows of a table without the repository's machinery, which costs more than the query itself; for the hottest reads alone. */
export interface RowReader<T> {
  /** The columns for a SELECT, named as the row type names them. */
  readonly columns: string
  /** The row as the row type describes it. */
  read(raw: Readonly<Record<string, unknown>>): T
}

export function rowReader<T extends ObjectLiteral>(schema: EntitySchema<T>): RowReader<T> {
  const columns = Object.entries(schema.options.columns).map(([key, column]) => ({
    key,
    name: column?.name ?? key,
    transformer: column?.transformer as ValueTransformer | undefined,
  }))
  return {
    columns: columns.map(({ key, name }) => `${name} AS ${key}`).join(', '),
    read: (raw) =>
      Object.fromEntries(
        columns.map(({ key, transformer }) => [key, transformer ? (transformer.from(raw[key]) as unknown) : raw[key]]),
      ) as T,
  }
}
