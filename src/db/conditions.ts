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

/** Where the next page of a list begins that is ordered by a time, newest first: below this row. */
export interface Position {
  readonly createdAt: Date
  readonly id: number
}

/** What follows the position in a list that is ordered by `column DESC, id DESC`, both of the same table: `r.claimed_at` and `r.id`. */
export function below(position: Position | null, column = 'created_at'): Condition {
  if (!position) return null
  const { createdAt, id } = position
  const idColumn = [...column.split('.').slice(0, -1), 'id'].join('.')
  return [`(${column} < ? OR (${column} = ? AND ${idColumn} < ?))`, createdAt, createdAt, id]
}

/** As `below`, in a list that is ordered by `created_at, id`, the oldest first. */
export function above(position: Position | null): Condition {
  if (!position) return null
  const { createdAt, id } = position
  return ['(created_at > ? OR (created_at = ? AND id > ?))', createdAt, createdAt, id]
}

/** Few different lengths, so that few statements are prepared. */
const PADDED_LENGTHS = [1, 2, 4, 8, 16]

/** `(a = ? AND b = ?) OR (a = ? AND b = ?) …`: rows that meet the condition with one of these sets of values, 1 to 16 of them. */
export function anyOf(condition: string, sets: readonly (readonly Param[])[]): Where {
  const length = PADDED_LENGTHS.find((padded) => padded >= sets.length)
  const last = sets.at(-1)
  if (length === undefined || !last) throw new Error(`a condition on ${sets.length} sets of values`)
  const padding = Array.from({ length: length - sets.length }, () => last)
  return {
    sql: `WHERE ${Array.from({ length }, () => `(${condition})`).join(' OR ')}`,
    params: [...sets, ...padding].flat(),
  }
}

/** Runs that are shorter are looked up id by id. */
const MIN_RUN = 4
/** No row has this id. */
const NO_ID = 0

/**
 * `id` is one of these: ids that follow each other are read as a range, which takes the server a third of the work of looking each up.
 */
export function idAmong(ids: readonly number[]): { readonly sql: string; readonly params: readonly Param[] } {
  const runs = runsOf(ids)
  const [only] = runs
  if (only && runs.length === 1) return { sql: 'id BETWEEN ? AND ?', params: [only.first, only.last] }
  const long = runs.filter(({ first, last }) => last - first + 1 >= MIN_RUN)
  const single = ids.filter((id) => !long.some(({ first, last }) => first <= id && id <= last))
  return {
    // Always with a list, by which it is not prepared: hardly any text of several ranges is used twice.
    sql: `(${['id IN (?)', ...long.map(() => 'id BETWEEN ? AND ?')].join(' OR ')})`,
    params: [single.length > 0 ? single : [NO_ID], ...long.flatMap(({ first, last }) => [first, last])],
  }
}

interface Run {
  readonly first: number
  last: number
}

/** Ids that follow each other, from the first to the last. */
function runsOf(ids: readonly number[]): Run[] {
  const runs: Run[] = []
  for (const id of ids.toSorted((a, b) => a - b)) {
    const run = runs.at(-1)
    if (run && id === run.last + 1) run.last = id
    else runs.push({ first: id, last: id })
  }
  return runs
}
