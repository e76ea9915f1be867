import type { Param, Sql } from './queries.ts'

/** A condition of a WHERE with the values of its `?`; null if it does not apply. */
export type Condition = readonly [sql: string, ...values: Param[]] | null

/** The conditions that apply, all of which must hold: `WHERE a = ? AND b = ?`; empty if none applies. */
export function where(...conditions: readonly Condition[]): Sql {
  const applying = conditions.filter((condition) => condition !== null)
  return {
    sql: applying.length === 0 ? '' : `WHERE ${applying.map(([sql]) => sql).join(' AND ')}`,
    params: applying.flatMap(([, ...values]) => values),
  }
}

/** The position of a row in a list that is ordered by a time and then by id. */
export interface Position {
  readonly at: Date
  readonly id: number
}

/** What a page requests from its list: at most `limit` rows, those after a position; null for the first ones. */
export interface PageRequest {
  readonly after: Position | null
  readonly limit: number
}

/** The rows after a position in a list that is ordered by these two columns, both in the same direction. */
export function following(
  after: Position | null,
  [at, id]: readonly [at: string, id: string],
  order: 'asc' | 'desc',
): Condition {
  if (!after) return null
  const sign = order === 'asc' ? '>' : '<'
  return [`(${at} ${sign} ? OR (${at} = ? AND ${id} ${sign} ?))`, after.at, after.at, after.id]
}

/** Shorter runs are looked up id by id. */
const MIN_RUN = 4
/** No row has this id. */
const NO_ID = 0

/** `id` is one of these. Consecutive ids become a range, which costs the server a third as much as looking up each id. */
export function idAmong(ids: readonly number[]): Sql {
  const runs = runsOf(ids)
  const [only] = runs
  if (only && runs.length === 1) return { sql: 'id BETWEEN ? AND ?', params: [only.first, only.last] }
  const long = runs.filter(({ first, last }) => last - first + 1 >= MIN_RUN)
  const single = ids.filter((id) => !long.some(({ first, last }) => first <= id && id <= last))
  return {
    // Always includes a list, so the driver sends it as text: a text with several ranges is rarely used twice.
    sql: `(${['id IN (?)', ...long.map(() => 'id BETWEEN ? AND ?')].join(' OR ')})`,
    params: [single.length > 0 ? single : [NO_ID], ...long.flatMap(({ first, last }) => [first, last])],
  }
}

interface Run {
  readonly first: number
  last: number
}

/** The runs of consecutive ids. */
function runsOf(ids: readonly number[]): Run[] {
  const runs: Run[] = []
  for (const id of ids.toSorted((a, b) => a - b)) {
    const run = runs.at(-1)
    if (run && id === run.last + 1) run.last = id
    else runs.push({ first: id, last: id })
  }
  return runs
}
