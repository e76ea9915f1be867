import { bigint, text } from '#db/columns.ts'
import { shape } from '#db/table.ts'
import type { Queries } from '#db/queries.ts'
import type { RealTime } from '#shared/time.ts'
import type { MonthRange } from '#reports/month.ts'
import { monthTable } from '#reports/sales/store.ts'
import { APP_NOW, type AppScope } from '#reports/store.ts'
import type { Cohort } from './renewal-rates.ts'

/** A ledger line that continued a period before its end. */
const CONTINUES = `kind IN ('extended', 'restarted') AND (line.end_before IS NULL OR line.end_before > line.applied_at)`

/** Subscriptions that began, were renewed before their end, and came back after it, by month in the app's own time (R422). */
export async function countMovements(
  db: Queries,
  { appIds }: AppScope,
  months: readonly MonthRange[],
): Promise<{ month: string; started: number; renewed: number; returned: number }[]> {
  const { sql, params } = monthTable(months)
  return db.all(
    shape({ month: text(), started: bigint(), renewed: bigint(), returned: bigint() }),
    `SELECT m.month, SUM(line.kind = 'started') AS started, SUM(line.${CONTINUES}) AS renewed,
       SUM(line.kind = 'restarted' AND line.end_before <= line.applied_at) AS returned
     FROM payment_applications line JOIN ${sql} ON line.applied_at >= m.since AND line.applied_at < m.until
     WHERE line.app_id IN (?) GROUP BY m.month`,
    [...params, appIds],
  )
}

/**
 * Periods that ended in each of the months, and before now, without having been continued. A line that was written after the end and left
 * it as it was, such as a plan switch, ended nothing.
 */
export async function countLapsed(
  db: Queries,
  { appIds }: AppScope,
  months: readonly MonthRange[],
  now: RealTime,
): Promise<{ month: string; lapsed: number }[]> {
  const { sql, params } = monthTable(months)
  return db.all(
    shape({ month: text(), lapsed: bigint() }),
    `SELECT m.month, COUNT(*) AS lapsed
     FROM payment_applications line JOIN apps a ON a.id = line.app_id
     JOIN ${sql} ON line.end_after >= m.since AND line.end_after < m.until
     WHERE line.app_id IN (?) AND line.end_after <= ${APP_NOW}
       AND (line.applied_at < line.end_after OR line.kind = 'ended')
       AND NOT EXISTS (SELECT 1 FROM payment_applications later WHERE later.subscription_id = line.subscription_id
                       AND later.revision > line.revision AND later.applied_at < line.end_after)
     GROUP BY m.month`,
    [...params, appIds, now],
  )
}

/** Subscriptions by the month in which they began and how often they were renewed, without lifetime purchases. */
export async function listCohorts(db: Queries, { appIds }: AppScope, months: readonly MonthRange[]): Promise<Cohort[]> {
  const { sql, params } = monthTable(months)
  return db.all(
    shape({ month: text(), renewals: bigint(), subscriptions: bigint() }),
    `SELECT x.month, x.renewals, COUNT(*) AS subscriptions
     FROM (SELECT m.month, (SELECT COUNT(*) FROM payment_applications line
             WHERE line.subscription_id = begun.subscription_id AND line.${CONTINUES}) AS renewals
           FROM payment_applications begun JOIN ${sql} ON begun.applied_at >= m.since AND begun.applied_at < m.until
           WHERE begun.app_id IN (?) AND begun.kind = 'started' AND begun.end_after IS NOT NULL) x
     GROUP BY x.month, x.renewals ORDER BY x.month, x.renewals`,
    [...params, appIds],
  )
}
