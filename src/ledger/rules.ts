/** What a row of a correct database never shows. */
export interface Rule {
  /** What is wrong, as the end of a sentence that begins with the row: `has a different amount left than …`. */
  readonly fault: string
  /**
   * The SQL condition of a row `x` that breaks the rule. `clock.now` is the present by the database's clock. It reads other rows by subqueries
   * alone, so that each look-up is one by an index, and unknown (null) is not broken.
   */
  readonly broken: string
}

/** The rules about the rows of a table. */
export interface TableRules {
  /** What a row is called: `transaction` makes `transaction 7`. */
  readonly subject: string
  readonly table: string
  /** The column that orders the rows; `id` if absent. */
  readonly key?: string
  readonly rules: readonly Rule[]
}

/** Later than any lease or retry except a webhook's, even if a machine's clock is hours ahead. */
export const FAR = 'clock.now + INTERVAL 1 DAY'
/** Later than any retry of a webhook that the settings allow. */
export const FAR_FOR_WEBHOOKS = 'clock.now + INTERVAL 31 DAY'
/** As `FAR`, in the time of the row's app. */
export const FAR_FOR_APP = `(SELECT ${FAR} + INTERVAL a.clock_offset_ms * 1000 MICROSECOND FROM apps a WHERE a.id = x.app_id)`

/** The condition that a column names no row of another table; `also` says what else that row must be. */
export function namesNone(column: string, table: string, also = ''): string {
  return `x.${column} IS NOT NULL AND NOT EXISTS (SELECT 1 FROM ${table} o WHERE o.id = x.${column}${also && ` AND ${also}`})`
}

/** The row that is named must be of the same app. */
export const SAME_APP = 'o.app_id = x.app_id'
/** The end user that is named must be of the same app and have the same label. */
export const SAME_END_USER = `${SAME_APP} AND o.external_ref = x.external_ref`
/** Of a price that is named: it is one of the plan that is named beside it, which is the app's. */
export const OF_ITS_PLAN = `o.plan_id = x.plan_id AND EXISTS (SELECT 1 FROM plans p WHERE p.id = o.plan_id AND p.app_id = x.app_id)`
