import { appTime, bigint, exact, id, int, realTime, text, words } from '#db/columns.ts'
import { shape, table, type Row } from '#db/table.ts'
import { insertedNew } from '#db/database-error.ts'
import type { Present } from '#db/database-now.ts'
import type { Queries } from '#db/queries.ts'
import type { Tx } from '#commands/transaction.ts'
import { prices, type Price } from '#plans/store.ts'
import { addMs, formatDay, HOUR_MS, MINUTE_MS, SECOND_MS, type AppTime, type RealTime } from '#shared/time.ts'
import { subscriptions, type Subscription } from '#subscriptions/store.ts'
import { endsInWindow, type Stage } from './stages.ts'

/**
 * `claimed`: somebody sends it now, or died at it; with `handedOverAt` set the mail server may have it, and nobody sends it again.
 * `failed`: it was surely not handed over, the next sweep may claim it. `refused`: as `failed`, and there is no such address: it may be
 * claimed when the customer has another one. `sent`: the mail server took it.
 */
export type ReminderStatus = 'claimed' | 'failed' | 'refused' | 'sent'

/** One mail of one stage of one period: its unique key is what keeps it from being sent twice. */
export const reminders = table('reminders', {
  id: id(),
  appId: bigint('app_id'),
  subscriptionId: bigint('subscription_id'),
  /** In the app's own time. */
  periodEnd: appTime('period_end'),
  stage: int('stage').as<Stage>(),
  status: exact('status', 16).as<ReminderStatus>(),
  /** Real time by the database's clock, as are the next three. Also what tells one claim from a later one of the same row. */
  claimedAt: realTime('claimed_at'),
  handedOverAt: realTime('handed_over_at').nullable(),
  sentAt: realTime('sent_at').nullable(),
  /** When a failed mail may be claimed again; null: at once. */
  retryAt: realTime('retry_at').nullable(),
  /** How often the mail server refused it. */
  failures: int('failures'),
  lastError: words('last_error', 500).nullable(),
  /** The address that was refused for good. */
  refusedTo: exact('refused_to', 254).nullable(),
  /** The UTC day, `YYYY-MM-DD`, among whose mails of the app this one counts; null where none was counted. */
  countedOn: exact('counted_on', 10).nullable(),
})
export type Reminder = Row<typeof reminders>

/** How many mails of an app were sent in a UTC day or are being sent: what the daily limit is held against. */
export const dailyMails = table('daily_mails', {
  id: id(),
  appId: bigint('app_id'),
  /** `YYYY-MM-DD` */
  day: exact('day', 10),
  mails: int('mails'),
})
export type DailyMails = Row<typeof dailyMails>

/** A claim that was not handed over for so long belongs to a sweep that died, and may be taken over. */
const CLAIM_LEASE_MS = 60 * SECOND_MS
/** A mail that the mail server refused waits this long, then twice as long each time, up to an hour. */
const FIRST_PAUSE_MS = MINUTE_MS
const LONGEST_PAUSE_MS = HOUR_MS

/** Claims of before then belong to a sweep that died. */
export function staleBefore(now: RealTime): RealTime {
  return addMs(now, -CLAIM_LEASE_MS)
}

/** Which subscriptions a sweep looks at: one app's, or those of all apps whose own time is the real one. */
export type SweepScope = { readonly appId: number } | 'apps in real time'

export interface Keyset {
  readonly periodEnd: AppTime
  readonly id: number
}

/** Apps whose test clock was moved: each has a present of its own, and is swept by itself. */
export async function listMovedApps(db: Queries): Promise<{ id: number; clockOffsetMs: number }[]> {
  return db.all(
    shape({ id: id(), clockOffsetMs: bigint() }),
    'SELECT id, clock_offset_ms AS clockOffsetMs FROM apps WHERE clock_offset_ms <> 0 ORDER BY id',
  )
}

/**
 * Subscriptions whose mail of `stage` is due at `now` (the time of the scope's apps) and was neither sent nor is being sent, nor was
 * refused for the address that the customer still has, in the order of their ends. It walks an index on the period end between the bounds of the stage's window, so that its cost follows what is
 * in the window, not what exists. The stored status does not count: one sweep with a wrong clock can falsify it. `realNow`, by the
 * database's clock: claims of mails not handed over are stale a lease before it. `withFailed`: also those that failed before and have
 * waited out their pause.
 */
export async function listDueSubscriptions(
  db: Queries,
  due: {
    readonly scope: SweepScope
    readonly stage: Stage
    readonly now: AppTime
    readonly realNow: RealTime
    /** Apps whose mails are not wanted. */
    readonly exceptApps: ReadonlySet<number>
    readonly withFailed: boolean
    readonly after: Keyset | null
    readonly limit: number
  },
): Promise<Subscription[]> {
  const bounds = endsInWindow(due.stage, due.now)
  const from = due.after ?? { periodEnd: bounds.after, id: Number.MAX_SAFE_INTEGER }
  const inScope = conditionOf(due.scope)
  const except = [...due.exceptApps]
  // Left to itself the optimizer may join the small tables by buffer and sort the whole window for each page.
  const rows = await db.all(
    shape({ id: id() }),
    `SELECT STRAIGHT_JOIN s.id
     FROM subscriptions s FORCE INDEX (${inScope.index ?? 'subscriptions_end'})
     JOIN apps a FORCE INDEX (PRIMARY) ON a.id = s.app_id
     JOIN customers c FORCE INDEX (PRIMARY) ON c.id = s.customer_id
     LEFT JOIN reminders r FORCE INDEX (reminders_subscription_end_stage)
       ON r.subscription_id = s.id AND r.period_end = s.current_period_end AND r.stage = ?
         AND (r.status <> 'failed' OR ? OR r.retry_at > ?) AND NOT (r.status = 'refused' AND r.refused_to <> c.email) AND NOT (r.status = 'claimed' AND r.handed_over_at IS NULL AND r.claimed_at < ?)
     WHERE ${inScope.sql}${except.length === 0 ? '' : ' AND s.app_id NOT IN (?)'}
       AND s.current_period_end >= ? AND s.current_period_end <= ?
       AND (s.current_period_end > ? OR s.id > ?)
       AND s.reminders_stopped_at IS NULL AND a.disabled_at IS NULL
       AND s.period_start <= DATE_SUB(s.current_period_end, INTERVAL ? DAY)
       AND r.id IS NULL
     ORDER BY s.current_period_end, s.id LIMIT ?`,
    [
      due.stage,
      !due.withFailed,
      due.realNow,
      staleBefore(due.realNow),
      ...inScope.values,
      ...(except.length === 0 ? [] : [except]),
      from.periodEnd,
      bounds.upTo,
      from.periodEnd,
      from.id,
      due.stage,
      due.limit,
    ],
  )
  return inOrder(
    rows.map((row) => row.id),
    (ids) => db.all(subscriptions, 'WHERE id IN (?)', [[...ids]]),
  )
}

/** How a scope is asked for, and the index whose order is that of the period ends within it, where the scope has one. */
function conditionOf(scope: SweepScope): { index: string | null; sql: string; values: number[] } {
  return scope === 'apps in real time'
    ? { index: null, sql: 'a.clock_offset_ms = 0', values: [] }
    : { index: 'subscriptions_app_end', sql: 's.app_id = ?', values: [scope.appId] }
}

async function inOrder<Row extends { readonly id: number }>(
  ids: readonly number[],
  load: (ids: readonly number[]) => Promise<Row[]>,
): Promise<Row[]> {
  if (ids.length === 0) return []
  const rows = new Map((await load(ids)).map((row) => [row.id, row]))
  return ids.flatMap((key) => rows.get(key) ?? [])
}

/** Prices by id, on sale or not. */
export async function listPricesByIds(db: Queries, priceIds: readonly number[]): Promise<Map<number, Price>> {
  if (priceIds.length === 0) return new Map()
  const found = await db.all(prices, 'WHERE id IN (?)', [[...new Set(priceIds)]])
  return new Map(found.map((price) => [price.id, price]))
}

export type ReminderKey = Pick<Reminder, 'appId' | 'subscriptionId' | 'periodEnd' | 'stage'>

/** A mail to claim; `countedOn`: the day that is to have it among its mails. */
export type NewClaim = ReminderKey & Pick<Reminder, 'countedOn'>

/** A claim that is held: whoever still finds `claimedAt` in the row may go on with it. `countedOn`: the day that has it among its mails. */
export type Claim = { readonly reminderId: number } & Pick<Reminder, 'appId' | 'claimedAt' | 'countedOn' | 'failures'>

/** The unique key that keeps two from claiming one mail. */
export const REMINDER_KEY = 'reminders_subscription_end_stage'

/** Claims mails that nobody has tried yet, at `now` by the database's clock. Throws a duplicate on `REMINDER_KEY` where somebody has. */
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
    if (!claim) throw new Error('the reminder that was claimed is not there')
    return claim
  })
}

function nameOf({ subscriptionId, periodEnd, stage }: ReminderKey): string {
  return `${subscriptionId} ${periodEnd.getTime()} ${stage}`
}

/**
 * Claims the mail to `address` that somebody has tried before, at `now` by the database's clock; null where it was sent, is being sent, is
 * unconfirmed, has to wait after a failure, or was refused for good.
 */
export async function claimTried(tx: Tx, key: ReminderKey, address: string, now: RealTime): Promise<Claim | null> {
  if (!(await takeOver(tx, key, address, now))) return null
  const { subscriptionId, periodEnd, stage } = key
  const claimed = await tx.one(reminders, 'WHERE subscription_id = ? AND period_end = ? AND stage = ?', [
    subscriptionId,
    periodEnd,
    stage,
  ])
  if (!claimed) throw new Error('the reminder that was claimed is not there')
  return claimOf(claimed)
}

export function claimOf({ id: reminderId, appId, claimedAt, countedOn, failures }: Reminder): Claim {
  return { reminderId, appId, claimedAt, countedOn, failures }
}

/**
 * Counts a mail that was tried before among the app's mails of `day`; null where they are `limit` already: then the caller's
 * transaction must not be committed. One that a sweep died at is counted already.
 */
export async function countMail(tx: Tx, claim: Claim, day: string, limit: number): Promise<Claim | null> {
  if (claim.countedOn === day) return claim
  const { appId, reminderId } = claim
  await tx.update(reminders, { id: reminderId }, { countedOn: day })
  return (await countMails(tx, appId, day, 1, limit)) ? { ...claim, countedOn: day } : null
}

/**
 * Adds `count` to the app's mails of `day`; false where they would be more than `limit`. The statement that counts is the one that compares,
 * so that no two daemons have the last mail of a day both.
 */
export async function countMails(tx: Tx, appId: number, day: string, count: number, limit: number): Promise<boolean> {
  if (await raiseCount(tx, appId, day, count, limit)) return true
  // Where the count is full, another try to insert it would only make callers wait for each other. It may have begun since the first try.
  const full = 'WHERE app_id = ? AND day = ? AND mails > ?'
  if ((await tx.count(dailyMails, full, [appId, day, limit - count])) > 0) return false
  await insertedNew('daily_mails_app_day', tx.insert(dailyMails, { appId, day, mails: 0 }))
  return raiseCount(tx, appId, day, count, limit)
}

async function raiseCount(tx: Tx, appId: number, day: string, count: number, limit: number): Promise<boolean> {
  return (
    (await tx.run('UPDATE daily_mails SET mails = mails + ? WHERE app_id = ? AND day = ? AND mails <= ?', [
      count,
      appId,
      day,
      limit - count,
    ])) === 1
  )
}

/** The mail of a claim that was just given up counts no more. */
async function uncountMail(tx: Tx, { appId, countedOn }: Claim): Promise<void> {
  if (countedOn === null) return
  await tx.run('UPDATE daily_mails SET mails = mails - 1 WHERE app_id = ? AND day = ? AND mails > 0', [
    appId,
    countedOn,
  ])
}

/** Claims that a sweep has died at by `now`, nothing handed over, which still count among the mails of that day; at most `limit`. */
export async function listDeadClaims(db: Queries, now: RealTime, limit: number): Promise<Claim[]> {
  const dead = `WHERE status = 'claimed' AND claimed_at < ? AND handed_over_at IS NULL AND counted_on = ? LIMIT ?`
  const rows = await db.all(reminders, dead, [staleBefore(now), formatDay(now), limit])
  return rows.map(claimOf)
}

/** Apps that have sent as many mails on `day` as they may; a limit of null is none. */
export async function listSpentApps(
  db: Queries,
  day: string,
  limits: { readonly live: number | null; readonly sandbox: number | null },
): Promise<number[]> {
  const rows = await db.all(
    shape({ id: id() }),
    `SELECT a.id FROM daily_mails d JOIN apps a ON a.id = d.app_id
     WHERE d.day = ? AND d.mails >= CASE WHEN a.is_sandbox = 1 THEN ? ELSE ? END`,
    [day, limits.sandbox, limits.live],
  )
  return rows.map((row) => row.id)
}

/** Removes up to `limit` counts of days before that of `before`; returns how many. */
export async function deleteOldDailyMails(tx: Tx, before: RealTime, limit: number): Promise<number> {
  return tx.run('DELETE FROM daily_mails WHERE day < ? ORDER BY day LIMIT ?', [formatDay(before), limit])
}

async function takeOver(tx: Tx, key: ReminderKey, address: string, now: RealTime): Promise<boolean> {
  return (
    (await tx.run(
      `UPDATE reminders SET status = 'claimed', claimed_at = ?, refused_to = NULL
     WHERE subscription_id = ? AND period_end = ? AND stage = ? AND handed_over_at IS NULL
       AND ((status = 'failed' AND (retry_at IS NULL OR retry_at <= ?)) OR (status = 'refused' AND refused_to <> ?)
         OR (status = 'claimed' AND claimed_at < ?))`,
      [now, key.subscriptionId, key.periodEnd, key.stage, now, address, staleBefore(now)],
    )) === 1
  )
}

/** What must still hold at the hand-over: the subscription as the mail tells it, the clock that it was due by, and its time. */
export interface Expected {
  readonly subscriptionRevision: number
  readonly clockOffsetMs: number
  /** Real times: the first at which the mail may leave, and the first at which it may not any more. */
  readonly from: RealTime
  readonly until: RealTime
}

/**
 * Marks, in one statement that is a transaction by itself, that the mail leaves now; false where it is not the time, where the claim is lost,
 * or where the subscription was changed, renewed or opted out, or its app disabled or its clock moved, or the day ended that has it among
 * its mails, since the mail was made. From here on nobody sends it again on their own.
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
        claim.reminderId,
        claim.claimedAt,
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

/** Records that the mail server took the mails of claims; returns how many, which an operator has not settled meanwhile. */
export async function markSent(tx: Tx, claims: readonly Claim[]): Promise<number> {
  let sent = 0
  for (const [claimedMs, ofOneTime] of Map.groupBy(claims, ({ claimedAt }) => claimedAt.getTime())) {
    sent += await tx.run(
      `UPDATE reminders SET status = 'sent', sent_at = ?, last_error = NULL
       WHERE id IN (?) AND status = 'claimed' AND claimed_at = ?`,
      [tx.now, ofOneTime.map(({ reminderId }) => reminderId), new Date(claimedMs)],
    )
  }
  return sent
}

/**
 * Frees a claim whose mail was surely not handed over: inside the window the next sweep may try again, or the first one after a pause
 * that grows, from `pauseFrom` on, where the mail itself was refused.
 */
export async function freeClaim(
  tx: Tx,
  claim: Claim,
  lastError: string,
  pauseFrom: RealTime | null = null,
): Promise<void> {
  const changes = pauseFrom === null ? { retryAt: null } : pauseAfter(claim.failures, pauseFrom)
  const found = await tx.update(reminders, heldBy(claim), {
    status: 'failed',
    handedOverAt: null,
    countedOn: null,
    lastError,
    ...changes,
  })
  if (found === 1) await uncountMail(tx, claim)
}

function pauseAfter(failures: number, now: RealTime): Pick<Reminder, 'failures' | 'retryAt'> {
  const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** Math.min(failures, 10), LONGEST_PAUSE_MS)
  return { failures: failures + 1, retryAt: addMs(now, pauseMs) }
}

function heldBy({ reminderId, claimedAt }: Claim) {
  return { id: reminderId, status: 'claimed', claimedAt } as const
}

/** Frees a claim whose mail the server refused for good: no sweep tries again while the customer has this address. */
export async function refuseClaim(tx: Tx, claim: Claim, address: string, lastError: string): Promise<void> {
  const found = await tx.update(reminders, heldBy(claim), {
    status: 'refused',
    handedOverAt: null,
    countedOn: null,
    refusedTo: address,
    lastError,
  })
  if (found === 1) await uncountMail(tx, claim)
}

/** A mail that waits for another address. */
export interface RefusedReminder {
  readonly id: number
  readonly appId: number
  readonly externalRef: string
  readonly stage: Stage
  readonly periodEnd: AppTime
  readonly refusedTo: string
  readonly lastError: string | null
  readonly refusedAt: RealTime
}

/**
 * Mails of present periods that were refused after `since` for the address that the customer still has; newest first. Those of which
 * nobody wants to know any more are left out: renewed, opted out, of a disabled app.
 */
export async function listRefused(db: Queries, since: RealTime, limit: number): Promise<RefusedReminder[]> {
  return db.all(
    shape({
      id: id(),
      appId: bigint(),
      externalRef: text(),
      stage: int().as<Stage>(),
      periodEnd: appTime(),
      refusedTo: text(),
      lastError: text().nullable(),
      refusedAt: realTime(),
    }),
    `SELECT r.id, r.app_id AS appId, s.external_ref AS externalRef, r.stage, r.period_end AS periodEnd,
       r.refused_to AS refusedTo, r.last_error AS lastError, r.claimed_at AS refusedAt
     FROM reminders r
     JOIN subscriptions s ON s.id = r.subscription_id AND s.current_period_end = r.period_end
     JOIN customers c ON c.id = s.customer_id AND c.email = r.refused_to
     JOIN apps a ON a.id = s.app_id
     WHERE r.status = 'refused' AND r.claimed_at >= ? AND s.reminders_stopped_at IS NULL AND a.disabled_at IS NULL
     ORDER BY r.claimed_at DESC, r.id DESC LIMIT ?`,
    [since, limit],
  )
}

/** Whether any mail failed that was tried after `since`. */
export async function hasFailed(db: Queries, since: RealTime): Promise<boolean> {
  return (await db.one(reminders, `WHERE status = 'failed' AND claimed_at >= ? LIMIT 1`, [since])) !== null
}

/** Lets the next sweep try refused mails again; returns how many were still refused. */
export async function freeRefused(tx: Tx, reminderIds: readonly number[]): Promise<number> {
  if (reminderIds.length === 0) return 0
  return tx.run(
    `UPDATE reminders SET status = 'failed', refused_to = NULL, retry_at = NULL WHERE id IN (?) AND status = 'refused'`,
    [reminderIds],
  )
}

/** Takes back a claim whose mail was not due any more. */
export async function dropClaim(tx: Tx, claim: Claim): Promise<void> {
  const found = await tx.run(
    `DELETE FROM reminders WHERE id = ? AND status = 'claimed' AND claimed_at = ? AND handed_over_at IS NULL`,
    [claim.reminderId, claim.claimedAt],
  )
  if (found === 1) await uncountMail(tx, claim)
}

/** Leaves the claim as it is, handed over and unconfirmed, and tells why. */
export async function noteUnconfirmed(tx: Tx, claim: Claim, lastError: string): Promise<void> {
  await tx.update(reminders, heldBy(claim), { lastError })
}

/** Mails that may have been handed over, and of which nobody knows, at `before` or earlier; newest first. */
export async function listUnconfirmed(db: Queries, before: RealTime, limit: number): Promise<Reminder[]> {
  return db.all(reminders, `WHERE status = 'claimed' AND handed_over_at <= ? ORDER BY claimed_at DESC LIMIT ?`, [
    before,
    limit,
  ])
}

/** A mail that a sweep has taken up and not finished. */
export interface OpenClaim {
  readonly externalRef: string
  readonly stage: Stage
  readonly claimedAt: RealTime
}

/** The mails of the app that sweeps are about now: claimed after `since` and not settled, the first first. */
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

export async function findReminder(db: Queries, reminderId: number): Promise<Reminder | null> {
  return db.one(reminders, 'WHERE id = ?', [reminderId])
}

/** The reminders of some subscriptions' present periods. */
export async function listRemindersOf(db: Queries, subscriptionIds: readonly number[]): Promise<Reminder[]> {
  return subscriptionIds.length === 0
    ? []
    : db.all(reminders, 'WHERE subscription_id IN (?)', [[...new Set(subscriptionIds)]])
}

/** An app's subscriptions that end after `from` and at the latest `until`, in the order of their ends. */
export async function listEndingSubscriptions(
  db: Queries,
  appId: number,
  bounds: { readonly from: AppTime; readonly until: AppTime; readonly after: Keyset | null; readonly limit: number },
): Promise<Subscription[]> {
  const from = bounds.after ?? { periodEnd: bounds.from, id: Number.MAX_SAFE_INTEGER }
  return db.all(
    subscriptions,
    `WHERE app_id = ? AND current_period_end >= ? AND current_period_end <= ? AND (current_period_end > ? OR id > ?)
     ORDER BY current_period_end, id LIMIT ?`,
    [appId, from.periodEnd, bounds.until, from.periodEnd, from.id, bounds.limit],
  )
}

/** Subscriptions that are stored as active and have ended at `now`, in the order of their ends, those behind `after`. */
export async function listRunOut(
  db: Queries,
  scope: SweepScope,
  now: AppTime,
  after: Keyset | null,
  limit: number,
): Promise<Keyset[]> {
  const inScope = conditionOf(scope)
  // The first bound is for the index: what has expired before lies in front.
  const behind = after
    ? ([
        'AND s.current_period_end >= ? AND (s.current_period_end > ? OR s.id > ?)',
        after.periodEnd,
        after.periodEnd,
        after.id,
      ] as const)
    : ([''] as const)
  const [condition, ...values] = behind
  return db.all(
    shape({ id: id(), periodEnd: appTime() }),
    `SELECT STRAIGHT_JOIN s.id, s.current_period_end AS periodEnd
     FROM subscriptions s FORCE INDEX (${inScope.index ?? 'subscriptions_status_end'})
     JOIN apps a FORCE INDEX (PRIMARY) ON a.id = s.app_id
     WHERE s.status = 'active' AND ${inScope.sql} AND s.current_period_end <= ? ${condition}
     ORDER BY s.current_period_end, s.id LIMIT ?`,
    [...inScope.values, now, ...values, limit],
  )
}

/** Stores that the periods ran out; those that were renewed meanwhile stay as they are. Returns how many it changed. */
export async function storeExpired(tx: Tx, subscriptionIds: readonly number[], now: AppTime): Promise<number> {
  return tx.run(
    `UPDATE subscriptions SET status = 'expired' WHERE id IN (?) AND status = 'active' AND current_period_end <= ?`,
    [subscriptionIds, now],
  )
}

/** Stops or resumes the mails of one subscription; true where that was a change. */
export async function setRemindersStopped(tx: Tx, subscriptionId: number, stoppedAt: AppTime | null): Promise<boolean> {
  return (
    (await tx.run(
      `UPDATE subscriptions SET reminders_stopped_at = ?
     WHERE id = ? AND reminders_stopped_at IS ${stoppedAt === null ? 'NOT NULL' : 'NULL'}`,
      [stoppedAt, subscriptionId],
    )) === 1
  )
}
