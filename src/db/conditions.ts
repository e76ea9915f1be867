import type { Param } from './queries.ts'

/** A condition of a WHERE with the values of its `?`; null where it does not apply. */
export type Condition = readonly [sql: string, ...values: Param[]] | null

export interface Where {
  /** `WHERE a = ? AND b = ?`; nothing where no condition applies. */
  readonly sql: string
  readonly params: readonly Param[]
}

/** The conditions that apply, all of which must hold. */
export function where(...conditions: readonly Condition[]): Where {
  const applying = conditions.filter((condition) => condition !== null)
  return {
    sql: applying.length === 0 ? '' : `WHERE ${applying.map(([sql]) => sql).join(' AND ')}`,
    params: applying.flatMap(([, ...values]) => values),
  }
}

/** Where a list that is ordered by a time, newest first, goes on. */
export interface Position {
  readonly createdAt: Date
  readonly id: number
}

/** What follows the position in a list that is ordered by `column DESC, id DESC`. */
export function below(position: Position | null, column = 'created_at'): Condition {
  if (!position) return null
  const { createdAt, id } = position
  return [`(${column} < ? OR (${column} = ? AND id < ?))`, createdAt, createdAt, id]
}
