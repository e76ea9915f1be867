import { bigint, exact } from '#db/columns.ts'
import { following, where, type Condition, type PageRequest } from '#db/conditions.ts'
import type { Queries, Sql } from '#db/queries.ts'
import { shape, type Source } from '#db/table.ts'
import { areUnconfirmed, claimOf } from '#mails/claims/store.ts'
import { reminders, type Reminder } from '#mails/reminders/store.ts'
import { DAY_MS, addMs, type RealTime } from '#shared/time.ts'
import type { Transaction } from '#transactions/store.ts'
import { receipts, type Receipt } from '#transactions/receipts/store.ts'

/** Longer than the stages of one period last. */
const REFUSED_LISTED_MS = 14 * DAY_MS

/** A reminder with the end user whose subscription it is about. */
export type ReminderWithOwner = Reminder & { readonly externalRef: string }
/** A receipt with its transaction's end user and currency. */
type ReceiptOfTransaction = Receipt & Pick<Transaction, 'externalRef' | 'currency'>

/** Mails that an operator looks after, as rows `r`. */
interface Selected {
  /** The table `r`, and those by which its rows are selected. */
  readonly from: string
  readonly joins: string
  readonly conditions: readonly Condition[]
}

export interface Selection<Row> extends Selected {
  readonly source: Source<Row>
  /** The `claimed_at` of a row. */
  readonly timeOf: (row: Row) => RealTime
}

const OF_REMINDERS = {
  source: reminders.joined('r', { externalRef: exact('s.external_ref', 191) }),
  from: 'reminders r',
  timeOf: ({ claimedAt }: Reminder): RealTime => claimedAt,
}

/** Reminders that were handed over and not answered, at `now` by the database's clock. */
export function selectUnconfirmedReminders(now: RealTime): Selection<ReminderWithOwner> {
  return {
    ...OF_REMINDERS,
    joins: 'JOIN subscriptions s ON s.id = r.subscription_id',
    conditions: [areUnconfirmed(now)],
  }
}

/** As `selectUnconfirmedReminders`, of receipts. */
export function selectUnconfirmedReceipts(now: RealTime): Selection<ReceiptOfTransaction> {
  return {
    source: receipts.joined('r', { externalRef: exact('t.external_ref', 191), currency: exact('t.currency', 3) }),
    from: 'receipts r',
    joins: 'JOIN transactions t ON t.id = r.transaction_id',
    conditions: [areUnconfirmed(now)],
    timeOf: (receipt) => claimOf(receipts, receipt).claimedAt,
  }
}

/**
 * Reminders of current periods that were refused lately for the customer's present address. Subscriptions that were renewed or opted out
 * and those of disabled apps are left out.
 */
export function selectRefusedReminders(now: RealTime): Selection<ReminderWithOwner> {
  return {
    ...OF_REMINDERS,
    joins: `JOIN subscriptions s ON s.id = r.subscription_id AND s.current_period_end = r.period_end
     JOIN customers c ON c.id = s.customer_id AND c.email = r.refused_to
     JOIN apps a ON a.id = s.app_id`,
    conditions: [
      [`r.status = 'refused' AND r.claimed_at >= ?`, addMs(now, -REFUSED_LISTED_MS)],
      ['s.reminders_stopped_at IS NULL AND a.disabled_at IS NULL'],
    ],
  }
}

/** A page of the selected mails, newest first. */
export async function listSelected<Row>(db: Queries, selection: Selection<Row>, page: PageRequest): Promise<Row[]> {
  const { source, joins, conditions } = selection
  const { sql, params } = where(...conditions, following(page.after, ['r.claimed_at', 'r.id'], 'desc'))
  return db.all(source, `${joins} ${sql} ORDER BY r.claimed_at DESC, r.id DESC LIMIT ?`, [...params, page.limit])
}

/** The app's reminders that sweeps are sending: claimed after `since` and not finished, oldest first. */
export async function listOpenClaims(
  db: Queries,
  appId: number,
  since: RealTime,
  limit: number,
): Promise<ReminderWithOwner[]> {
  return db.all(
    OF_REMINDERS.source,
    `JOIN subscriptions s ON s.id = r.subscription_id
     WHERE r.status = 'claimed' AND r.claimed_at > ? AND r.app_id = ? AND r.last_error IS NULL
     ORDER BY r.claimed_at, r.id LIMIT ?`,
    [since, appId, limit],
  )
}

/** How many `listSelected` lists in all. */
export async function countSelected(db: Queries, selection: Selected): Promise<number> {
  const { sql, params } = columnsOf('COUNT(*) AS mails', selection)
  return (await db.single(shape({ mails: bigint() }), sql, params)).mails
}

/** A statement that reads some columns of all selected mails. */
export function columnsOf(list: string, { from, joins, conditions }: Selected): Sql {
  const { sql, params } = where(...conditions)
  return { sql: `SELECT ${list} FROM ${from} ${joins} ${sql}`, params }
}
