import { toRealTime } from '#apps/app-time.ts'
import { appTime, bigint, int, realTime } from '#db/columns.ts'
import type { Condition } from '#db/conditions.ts'
import type { Present } from '#db/database-now.ts'
import type { Queries, Sql } from '#db/queries.ts'
import { table, type Row } from '#db/table.ts'
import type { Tx } from '#commands/transaction.ts'
import { mailColumns, UNTRIED } from '#mail/mail-columns.ts'
import type { RealTime } from '#shared/time.ts'
import type { Subscription } from '#subscriptions/store.ts'
import { claimOf, type Claim } from '#mails/claims/store.ts'
import { returnReservedMail } from '#mails/limits/store.ts'
import type { DueReminder } from './compose-reminder.ts'
import { stageWindow, type Stage } from './stages.ts'

/** One mail of one stage of one period. Its unique key keeps it from being sent twice. */
export const reminders = table('reminders', {
  ...mailColumns,
  claimedAt: realTime('claimed_at'),
  subscriptionId: bigint('subscription_id'),
  /** In the app's own time. */
  periodEnd: appTime('period_end'),
  stage: int('stage').as<Stage>(),
})
export type Reminder = Row<typeof reminders>

export type ReminderKey = Pick<Reminder, 'appId' | 'subscriptionId' | 'periodEnd' | 'stage'>

/** A mail to claim, and the day whose limit it counts towards. */
export type NewClaim = ReminderKey & Pick<Reminder, 'countedOn'>

/** The unique key by which only one sweep can claim a mail. */
export const REMINDER_KEY = 'reminders_subscription_end_stage'

/**
 * Claims mails that no sweep has tried, at `now` by the database's clock. Returns the claims by `reminderName`. Throws a duplicate on
 * `REMINDER_KEY` if a sweep has tried one of them.
 */
export async function claimNew(tx: Tx, mails: readonly NewClaim[], now: RealTime): Promise<Map<string, Claim>> {
  if (mails.length === 0) return new Map()
  await tx.insertAll(
    reminders,
    mails.map((mail) => ({ ...UNTRIED, ...mail, status: 'claimed', claimedAt: now }) as const),
  )
  const rows = await tx.all(reminders, `WHERE subscription_id IN (?) AND status = 'claimed' AND claimed_at = ?`, [
    mails.map(({ subscriptionId }) => subscriptionId),
    now,
  ])
  return new Map(rows.map((row) => [reminderName(row), claimOf(reminders, row)]))
}

/** For the keys of maps. */
export function reminderName({ subscriptionId, periodEnd, stage }: Omit<ReminderKey, 'appId'>): string {
  return `${subscriptionId} ${periodEnd.getTime()} ${stage}`
}

/** The rows of these mails that sweeps have tried, locked, so that no other sweep claims them before the commit. */
export async function lockTried(tx: Tx, mails: readonly ReminderKey[]): Promise<Reminder[]> {
  const values = <Key extends keyof ReminderKey>(key: Key) => [...new Set(mails.map((mail) => mail[key]))]
  return tx.all(reminders, 'WHERE subscription_id IN (?) AND period_end IN (?) AND stage IN (?) FOR UPDATE', [
    values('subscriptionId'),
    values('periodEnd'),
    values('stage'),
  ])
}

/** Whether a mail that was tried before may be claimed again at `now`, for `address`. */
export function isClaimable({ status, retryAt, refusedTo }: Reminder, address: string, now: RealTime): boolean {
  return status === 'failed' ? retryAt === null || retryAt <= now : status === 'refused' && refusedTo !== address
}

/** `isClaimable` as a condition on reminders `r`; `to` is the SQL expression of the address. */
export function claimableSql(to: string, now: RealTime): Sql {
  return {
    sql: `((r.status = 'failed' AND (r.retry_at IS NULL OR r.retry_at <= ?)) OR (r.status = 'refused' AND r.refused_to <> ${to}))`,
    params: [now],
  }
}

/**
 * At `now`, the stage's window is open for the reminder `r`, and since the mail was composed the subscription did not change, its customer
 * did not opt out, and its app was neither disabled nor its clock moved.
 */
export function stillDue({ app, subscription, periodEnd, stage }: DueReminder, now: Present): Condition {
  const { from, until } = stageWindow(stage, periodEnd)
  return [
    `${now.sql} >= ? AND ${now.sql} < ? AND EXISTS (
       SELECT 1 FROM subscriptions s JOIN apps a ON a.id = s.app_id
       WHERE s.id = r.subscription_id AND s.revision = ? AND s.current_period_end = r.period_end
         AND s.reminders_stopped_at IS NULL AND a.disabled_at IS NULL AND a.clock_offset_ms = ?)`,
    ...now.params,
    toRealTime(app, from),
    ...now.params,
    toRealTime(app, until),
    subscription.revision,
    app.clockOffsetMs,
  ]
}

/** Whether any mail that was tried after `since` has failed. */
export async function hasFailed(db: Queries, since: RealTime): Promise<boolean> {
  return (await db.one(reminders, `WHERE status = 'failed' AND claimed_at >= ? LIMIT 1`, [since])) !== null
}

/** Lets the next sweep try refused mails again; returns how many that were. */
export async function releaseRefused(tx: Tx, reminderIds: readonly number[]): Promise<number> {
  if (reminderIds.length === 0) return 0
  return tx.run(
    `UPDATE reminders SET status = 'failed', refused_to = NULL, retry_at = NULL WHERE id IN (?) AND status = 'refused'`,
    [reminderIds],
  )
}

/** Deletes a claim whose mail is no longer due. */
export async function deleteClaim(tx: Tx, claim: Claim): Promise<void> {
  const found = await tx.run(
    `DELETE FROM reminders WHERE id = ? AND status = 'claimed' AND claimed_at = ? AND handed_over_at IS NULL`,
    [claim.id, claim.claimedAt],
  )
  if (found === 1) await returnReservedMail(tx, claim)
}

/** The reminders of all periods of these subscriptions. */
export async function listRemindersOf(db: Queries, subscriptionIds: readonly number[]): Promise<Reminder[]> {
  return subscriptionIds.length === 0
    ? []
    : db.all(reminders, 'WHERE subscription_id IN (?)', [[...new Set(subscriptionIds)]])
}

/** The reminders of these subscriptions for periods that end no earlier than the first of theirs, and no later than the last. */
export async function listRemindersOfPeriods(db: Queries, current: readonly Subscription[]): Promise<Reminder[]> {
  const ends = current
    .flatMap(({ currentPeriodEnd }) => currentPeriodEnd ?? [])
    .sort((a, b) => a.getTime() - b.getTime())
  const [first, last] = [ends.at(0), ends.at(-1)]
  if (!first || !last) return []
  return db.all(
    reminders,
    `FORCE INDEX (reminders_subscription_end_stage) WHERE subscription_id IN (?) AND period_end BETWEEN ? AND ?`,
    [current.map(({ id: subscriptionId }) => subscriptionId), first, last],
  )
}
