import { queriesOver, type Param, type Queries } from '#db/queries.ts'
import type { AnyTable } from './tables.ts'
import type { TestDb } from './database.ts'

/** How the server finds the rows of one table. */
export interface Plan {
  readonly table: string | null
  readonly key: string | null
  readonly possible_keys: string | null
  readonly Extra: string
}

/** The execution plan of a statement. */
export function explain({ query }: TestDb, sql: string, params: readonly Param[]): Promise<Plan[]> {
  return query<Plan[]>(`EXPLAIN FORMAT=TRADITIONAL ${sql}`, [...params])
}

/** The execution plans of the statements that `read` sends. They return no rows. */
export async function plansOf(db: TestDb, read: (db: Queries) => Promise<unknown>): Promise<Plan[]> {
  const plans: Plan[] = []
  const reader = queriesOver(async (sql, params) => {
    plans.push(...(await explain(db, sql, params)))
    return []
  })
  await read(reader)
  return plans
}

/** Lets the server count the rows of a table, by which it makes its plans. */
export async function refreshStatistics({ query }: TestDb, { name }: AnyTable): Promise<void> {
  await query(`ANALYZE TABLE ${name}`)
}
