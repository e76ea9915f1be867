import { bigint, id, text } from '#db/columns.ts'
import { where } from '#db/conditions.ts'
import type { Queries } from '#db/queries.ts'
import { shape } from '#db/table.ts'
import type { RealTime } from '#shared/time.ts'
import { DELIVERY_RULES } from './deliveries/store.ts'
import { MONEY_RULES } from './money/store.ts'
import { PERIOD_RULES } from './periods/store.ts'
import { PROMOTION_RULES } from './promotions/store.ts'
import type { TableRules } from './rules.ts'

/** Something in the ledgers that does not add up, with the keys that `ledger verify --json` prints. */
export interface Discrepancy {
  /** `subscription 12`, `transaction 7`, `event 3` */
  readonly subject: string
  readonly fault: string
}

/** Rows that one statement reads: a second's work at most. */
const STEP = 5000

/**
 * The rows that break a rule. `appId` null checks all apps, and the rows that belong to no app. `now` is by the database's clock. Each
 * statement reads the rows of a step and their related rows at one instant, so that concurrent work is not reported as an error. Awaits
 * `between` after each.
 */
export async function findBrokenRules(
  db: Queries,
  appId: number | null,
  now: RealTime,
  between: () => Promise<void>,
): Promise<Discrepancy[]> {
  const found: Discrepancy[] = []
  for (const rules of [...PERIOD_RULES, ...MONEY_RULES, ...PROMOTION_RULES, ...DELIVERY_RULES]) {
    for (let after = 0; ;) {
      const last = await lastOfStep(db, rules, appId, after)
      if (last === null) break
      found.push(...(await brokenBetween(db, rules, { appId, after, last, now })))
      after = last
      await between()
    }
  }
  return found
}

async function lastOfStep(
  db: Queries,
  { table, key = 'id' }: TableRules,
  appId: number | null,
  after: number,
): Promise<number | null> {
  const rows = where([`x.${key} > ?`, after], ofApp(table, appId))
  const { last } = await db.single(
    shape({ last: bigint().nullable() }),
    `SELECT MAX(step.id) AS last FROM (SELECT x.${key} AS id FROM ${table} x ${rows.sql} ORDER BY x.${key} LIMIT ?) step`,
    [...rows.params, STEP],
  )
  return last
}

function ofApp(table: string, appId: number | null): readonly [string, number] | null {
  return appId === null ? null : [`x.${table === 'apps' ? 'id' : 'app_id'} = ?`, appId]
}

async function brokenBetween(
  db: Queries,
  { subject, table, key = 'id', rules }: TableRules,
  step: { readonly appId: number | null; readonly after: number; readonly last: number; readonly now: RealTime },
): Promise<Discrepancy[]> {
  const rows = where([`x.${key} > ? AND x.${key} <= ?`, step.after, step.last], ofApp(table, step.appId))
  const broken = rules.map((rule) => `CASE WHEN ${rule.broken} THEN '1' ELSE '0' END`)
  const marked = await db.all(
    shape({ id: id(), broken: text() }),
    `SELECT x.${key} AS id, CONCAT(${broken.join(', ')}) AS broken
     FROM (SELECT CAST(? AS DATETIME(3)) AS now) clock STRAIGHT_JOIN ${table} x ${rows.sql}
     HAVING broken LIKE '%1%' ORDER BY id`,
    [step.now, ...rows.params],
  )
  return marked.flatMap(({ id: rowId, broken: marks }) =>
    rules
      .filter((_rule, index) => marks[index] === '1')
      .map(({ fault }) => ({ subject: `${subject} ${rowId}`, fault })),
  )
}
