import { appTime, bigint, exact, id, int, realTime, text, words } from '#db/columns.ts'
import type { Where } from '#db/conditions.ts'
import type { Present } from '#db/database-now.ts'
import type { Queries } from '#db/queries.ts'
import { shape, table, type Row } from '#db/table.ts'
import type { Tx } from '#commands/transaction.ts'
import { addMs, formatDay, SECOND_MS, type RealTime } from '#shared/time.ts'
import type { Subscription } from '#subscriptions/store.ts'
import { countMails, uncountMail } from './limits/store.ts'
import type { Stage } from './stages.ts'

/**
 * `claimed`: a sweep is sending it, or died; with `handedOverAt` set the mail server may have it, and no sweep sends it again.
 * `failed`: it was not handed over, and a later sweep may claim it. `refused`: the address does not exist, and a sweep may claim it when
 * the customer has another one. `sent`: the mail server accepted it.
 */
export type ReminderStatus = 'claimed' | 'failed' | 'refused' | 'sent'

/** One mail of one stage of one period. Its unique key keeps it from being sent twice. */
export const reminders = table('reminders', {
  id: id(),
  appId: bigint('app_id'),
  subscriptionId: bigint('subscription_id'),
  /** In the app's own time. */
  periodEnd: appTime('period_end'),
  stage: int('stage').as<Stage>(),
  status: exact('status', 16).as<ReminderStatus>(),
  /** By the database's clock, as are the next three. Also identifies the claim among later claims of the same row. */
  claimedAt: realTime('claimed_at'),
  handedOverAt: realTime('handed_over_at').nullable(),
  sentAt: realTime('sent_at').nullable(),
  /** When a failed mail may be claimed again; null for at once. */
  retryAt: realTime('retry_at').nullable(),
  /** How often it failed. */
  failures: int('failures'),
  lastError: words('last_error', 500).nullable(),
  /** The address that does not exist. */
  refusedTo: exact('refused_to', 254).nullable(),
  /** The UTC day, `YYYY-MM-DD`, whose daily limit this mail counts towards; null without a limit. */
  countedOn: exact('counted_on', 10).nullable(),
})
export type Reminder = Row<typeof reminders>

/** A claim this old that was not handed over belongs to a sweep that died, and may be taken over. */
const CLAIM_LEASE_MS = 60 * SECOND_MS

/** Claims from before this instant belong to sweeps that died. */
export function staleBefore(now: RealTime): RealTime {
  return addMs(now, -CLAIM_LEASE_MS)
}

export type ReminderKey = Pick<Reminder, 'appId' | 'subscriptionId' | 'periodEnd' | 'stage'>

/** A mail to claim, and the day whose limit it counts towards. */
export type NewClaim = ReminderKey & Pick<Reminder, 'countedOn'>

type Marks = readonly [RealTime, ...RealTime[]]

/** A mail that one sweep may send, a reminder or a receipt. */
export interface Claim {
  readonly id: number
  readonly appId: number
  /** How often it failed before. */
  readonly failures: number
  /** What the sweep wrote into the column that tells claims apart: the claim holds while one of these stands there. */
  readonly marks: Marks
  /** The UTC day whose daily limit the mail counts towards; null without a limit. */
  readonly countedOn: string | null
}

/** The unique key by which only one sweep can claim a mail. */
export const REMINDER_KEY = 'reminders_subscription_end_stage'

/** Claims mails that no sweep has tried, at `now` by the database's clock. Throws a duplicate on `REMINDER_KEY` if one has. */
export async function claimNew(tx: Tx, mails: readonly NewClaim[], now: RealTime): Promise<Claim[]> {
  const fresh = { handedOverAt: null, sentAt: null, retryAt: null, failures: 0, lastError: null, refusedTo: null }
  await tx.insertAll(
    reminders,
    mails.map((mail) => ({ ...mail, status: 'claimed', claimedAt: now, ...fresh }) as const),
  )
  const rows = await tx.all(reminders, `WHERE subscription_id IN (?) AND status = 'claimed' AND claimed_at = ?`, [
    mails.map(({ subscriptionId }) => subscriptionId),
    now,
  ])
  const claims = new Map(rows.map((row) => [nameOf(row), claimOf(row)]))
  return mails.map((mail) => {
    const claim = claims.get(nameOf(mail))
    if (!claim) throw new Error('the claimed reminder does not exist')
    return claim
  })
}

/** For the keys of maps. */
export function nameOf({
  subscriptionId,
  periodEnd,
  stage,
}: Pick<Reminder, 'subscriptionId' | 'periodEnd' | 'stage'>): string {
  return `${subscriptionId} ${periodEnd.getTime()} ${stage}`
}

/**
 * Claims a mail to `address` that a sweep has tried before, at `now` by the database's clock. Null if it was sent, is being sent, is
 * unconfirmed, has to wait after a failure, or was refused for this address.
 */
export async function reclaim(tx: Tx, key: ReminderKey, address: string, now: RealTime): Promise<Claim | null> {
  if (!(await takeOver(tx, key, address, now))) return null
  const { subscriptionId, periodEnd, stage } = key
  const claimed = await tx.one(reminders, 'WHERE subscription_id = ? AND period_end = ? AND stage = ?', [
    subscriptionId,
    periodEnd,
    stage,
  ])
  if (!claimed) throw new Error('the claimed reminder does not exist')
  return claimOf(claimed)
}

export function claimOf({ id: reminderId, appId, failures, claimedAt, countedOn }: Reminder): Claim {
  return { id: reminderId, appId, failures, marks: [claimedAt], countedOn }
}

/**
 * Counts a reclaimed mail towards the app's limit of `day`. Null if the limit is reached: the caller must not commit. A mail that was
 * already counted on that day, by a sweep that died, is not counted again.
 */
export async function countMail(tx: Tx, claim: Claim, day: string, limit: number): Promise<Claim | null> {
  if (claim.countedOn === day) return claim
  await tx.update(reminders, { id: claim.id }, { countedOn: day })
  return (await countMails(tx, claim.appId, day, 1, limit)) ? { ...claim, countedOn: day } : null
}

/** Claims of sweeps that died before handing anything over, which still count towards the limit of the day of `now`; at most `limit`. */
export async function listDeadClaims(db: Queries, now: RealTime, limit: number): Promise<Claim[]> {
  const dead = `WHERE status = 'claimed' AND claimed_at < ? AND handed_over_at IS NULL AND counted_on = ? LIMIT ?`
  const rows = await db.all(reminders, dead, [staleBefore(now), formatDay(now), limit])
  return rows.map(claimOf)
}

/** Reminders `r` that were tried before and may be claimed once more, at `now`, for the address that is the SQL expression `to`. */
export function claimable(to: string, now: RealTime, values: readonly string[] = []): Where {
  return {
    sql: `(r.handed_over_at IS NULL AND ((r.status = 'failed' AND (r.retry_at IS NULL OR r.retry_at <= ?))
      OR (r.status = 'refused' AND r.refused_to <> ${to}) OR (r.status = 'claimed' AND r.claimed_at < ?)))`,
    params: [now, ...values, staleBefore(now)],
  }
}

async function takeOver(tx: Tx, key: ReminderKey, address: string, now: RealTime): Promise<boolean> {
  const again = claimable('?', now, [address])
  return (
    (await tx.run(
      `UPDATE reminders r SET r.status = 'claimed', r.claimed_at = ?, r.refused_to = NULL
       WHERE r.subscription_id = ? AND r.period_end = ? AND r.stage = ? AND ${again.sql}`,
      [now, key.subscriptionId, key.periodEnd, key.stage, ...again.params],
    )) === 1
  )
}

/** What must still be true at the hand-over: the subscription that the mail describes, the app's clock, and the stage's window. */
export interface Expected {
  readonly subscriptionRevision: number
  readonly clockOffsetMs: number
  /** The window in real time: `from` is the first instant inside, `until` the first one after. */
  readonly from: RealTime
  readonly until: RealTime
}

/**
 * Marks that the mail leaves now, in one autocommitted statement. From then on no sweep sends it again. False if the claim was lost,
 * the window is not open, the day that counts the mail has ended, or, since the mail was composed, the subscription changed, its
 * customer opted out, or its app was disabled or its clock moved.
 */
export async function markHandedOver(db: Queries, now: Present, claim: Claim, expected: Expected): Promise<boolean> {
  return (
    (await db.run(
      `UPDATE reminders r SET r.handed_over_at = ${now.sql}
     WHERE r.id = ? AND r.status = 'claimed' AND r.claimed_at = ? AND r.handed_over_at IS NULL
       AND (r.counted_on IS NULL OR r.counted_on = DATE_FORMAT(${now.sql}, '%Y-%m-%d')) AND ${now.sql} >= ? AND ${now.sql} < ?
       AND EXISTS (
         SELECT 1 FROM subscriptions s JOIN apps a ON a.id = s.app_id
         WHERE s.id = r.subscription_id AND s.revision = ? AND s.current_period_end = r.period_end
           AND s.reminders_stopped_at IS NULL AND a.disabled_at IS NULL AND a.clock_offset_ms = ?)`,
      [
        ...now.params,
        claim.id,
        claim.marks[0],
        ...now.params,
        ...now.params,
        expected.from,
        ...now.params,
        expected.until,
        expected.subscriptionRevision,
        expected.clockOffsetMs,
      ],
    )) === 1
  )
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
export async function dropClaim(tx: Tx, claim: Claim): Promise<void> {
  const found = await tx.run(
    `DELETE FROM reminders WHERE id = ? AND status = 'claimed' AND claimed_at = ? AND handed_over_at IS NULL`,
    [claim.id, claim.marks[0]],
  )
  if (found === 1) await uncountMail(tx, claim)
}

/** A mail that a sweep has claimed and not finished. */
export interface OpenClaim {
  readonly externalRef: string
  readonly stage: Stage
  readonly claimedAt: RealTime
}

/** The app's mails that sweeps are sending: claimed after `since` and not finished, oldest first. */
export async function listOpenClaims(db: Queries, appId: number, since: RealTime, limit: number): Promise<OpenClaim[]> {
  return db.all(
    shape({ externalRef: text(), stage: int().as<Stage>(), claimedAt: realTime() }),
    `SELECT s.external_ref AS externalRef, r.stage, r.claimed_at AS claimedAt
     FROM reminders r JOIN subscriptions s ON s.id = r.subscription_id
     WHERE r.status = 'claimed' AND r.claimed_at > ? AND r.app_id = ? AND r.last_error IS NULL
     ORDER BY r.claimed_at, r.id LIMIT ?`,
    [since, appId, limit],
  )
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
