import { appTime, bigint, exact, id, int, realTime, text, words } from '#db/columns.ts'
import { below, where, type Condition, type Position } from '#db/conditions.ts'
import { shape, table, type Row, type Source } from '#db/table.ts'
import { insertedNew } from '#db/database-error.ts'
import type { Present } from '#db/database-now.ts'
import type { Queries } from '#db/queries.ts'
import type { Tx } from '#commands/transaction.ts'
import { prices, type Price } from '#plans/store.ts'
import { addMs, formatDay, HOUR_MS, MINUTE_MS, SECOND_MS, type AppTime, type RealTime } from '#shared/time.ts'
import { subscriptions, type Subscription } from '#subscriptions/store.ts'
import { receipts, type Receipt, type Transaction } from '#transactions/store.ts'
import { endsInWindow, type Stage } from '#mails/stages.ts'

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

/** How many mails of an app were sent, or are being sent, in a UTC day: compared with the daily limit. */
export const dailyMails = table('daily_mails', {
  id: id(),
  appId: bigint('app_id'),
  /** `YYYY-MM-DD` */
  day: exact('day', 10),
  mails: int('mails'),
})

/** A claim this old that was not handed over belongs to a sweep that died, and may be taken over. */
const CLAIM_LEASE_MS = 60 * SECOND_MS
/** A mail that failed waits this long, then twice as long each time, up to an hour. */
const FIRST_PAUSE_MS = MINUTE_MS
const LONGEST_PAUSE_MS = HOUR_MS

/** Claims from before this instant belong to sweeps that died. */
export function staleBefore(now: RealTime): RealTime {
  return addMs(now, -CLAIM_LEASE_MS)
}

/** Which subscriptions a sweep covers: one app's, or those of all apps in real time. */
export type SweepScope = { readonly appId: number } | 'apps in real time'

export interface Keyset {
  readonly periodEnd: AppTime
  readonly id: number
}

/** Apps whose test clock was moved. Each has its own present, and so a sweep of its own. */
export async function listMovedApps(db: Queries): Promise<{ id: number; clockOffsetMs: number }[]> {
  return db.all(
    shape({ id: id(), clockOffsetMs: bigint() }),
    'SELECT id, clock_offset_ms AS clockOffsetMs FROM apps WHERE clock_offset_ms <> 0 ORDER BY id',
  )
}

/**
 * Subscriptions whose mail of `stage` is due at `now` (the time of the scope's apps), in the order of their ends. Left out are mails
 * that were sent, are being sent, or were refused for the customer's present address. `withFailed` adds those that failed and have
 * waited out their pause. `realNow` is by the database's clock, and decides which claims are stale.
 *
 * The query reads an index on the period end within the stage's window, so that its cost depends on what is due, not on what exists.
 * It ignores the stored status, which a sweep with a wrong clock can falsify.
 */
export async function listDueSubscriptions(
  db: Queries,
  due: {
    readonly scope: SweepScope
    readonly stage: Stage
    readonly now: AppTime
    readonly realNow: RealTime
    /** Apps to leave out. */
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
  // Without the hints, the optimizer may join the small tables by buffer and sort the whole window for each page.
  const rows = await db.all(
    shape({ id: id() }),
    `SELECT STRAIGHT_JOIN s.id
     FROM subscriptions s FORCE INDEX (${inScope.index ?? 'subscriptions_end'})
     JOIN apps a FORCE INDEX (PRIMARY) ON a.id = s.app_id
     JOIN customers c FORCE INDEX (PRIMARY) ON c.id = s.customer_id
     LEFT JOIN reminders r FORCE INDEX (reminders_subscription_end_stage)
       ON r.subscription_id = s.id AND r.period_end = s.current_period_end AND r.stage = ?
         AND (r.status <> 'failed' OR ? OR r.retry_at > ?)
         AND NOT (r.status = 'refused' AND r.refused_to <> c.email)
         AND NOT (r.status = 'claimed' AND r.handed_over_at IS NULL AND r.claimed_at < ?)
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

/** The SQL condition of a scope, and the index that orders its subscriptions by period end, if there is one. */
export function conditionOf(scope: SweepScope): { index: string | null; sql: string; values: number[] } {
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

/** A mail to claim, and the day whose limit it counts towards. */
export type NewClaim = ReminderKey & Pick<Reminder, 'countedOn'>

/** A claim. It is valid while the row still holds its `claimedAt`. */
export type Claim = { readonly reminderId: number } & Pick<Reminder, 'appId' | 'claimedAt' | 'countedOn' | 'failures'>

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

function nameOf({ subscriptionId, periodEnd, stage }: ReminderKey): string {
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

export function claimOf({ id: reminderId, appId, claimedAt, countedOn, failures }: Reminder): Claim {
  return { reminderId, appId, claimedAt, countedOn, failures }
}

/**
 * Counts a reclaimed mail towards the app's limit of `day`. Null if the limit is reached: the caller must not commit. A mail that was
 * already counted on that day, by a sweep that died, is not counted again.
 */
export async function countMail(tx: Tx, claim: Claim, day: string, limit: number): Promise<Claim | null> {
  if (claim.countedOn === day) return claim
  const { appId, reminderId } = claim
  await tx.update(reminders, { id: reminderId }, { countedOn: day })
  return (await countMails(tx, appId, day, 1, limit)) ? { ...claim, countedOn: day } : null
}

/**
 * Adds `count` to the app's mails of `day`; false if that would exceed `limit`. One statement compares and counts, so that two
 * daemons cannot both send the last mail of a day.
 */
export async function countMails(tx: Tx, appId: number, day: string, count: number, limit: number): Promise<boolean> {
  if (await raiseCount(tx, appId, day, count, limit)) return true
  // At the limit, trying to insert the row would only make callers wait for each other. Another daemon may have inserted it just now.
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

/** Takes back the count of a mail that did not leave. */
export async function decrementDailyCount(
  tx: Tx,
  { appId, countedOn }: Pick<Claim, 'appId' | 'countedOn'>,
): Promise<void> {
  if (countedOn === null) return
  await tx.run('UPDATE daily_mails SET mails = mails - 1 WHERE app_id = ? AND day = ? AND mails > 0', [
    appId,
    countedOn,
  ])
}

/** Claims of sweeps that died before handing anything over, which still count towards the limit of the day of `now`; at most `limit`. */
export async function listDeadClaims(db: Queries, now: RealTime, limit: number): Promise<Claim[]> {
  const dead = `WHERE status = 'claimed' AND claimed_at < ? AND handed_over_at IS NULL AND counted_on = ? LIMIT ?`
  const rows = await db.all(reminders, dead, [staleBefore(now), formatDay(now), limit])
  return rows.map(claimOf)
}

/** Apps that have reached their limit of `day`; null is no limit. */
export async function listAppsAtLimit(
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

/** Records that the mail server accepted the mails; returns how many, without those that an operator has resolved in the meantime. */
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
 * Releases a claim whose mail was not handed over, so that a later sweep may try again: at once, or, with `pauseFrom`, after a pause from
 * then on that doubles with each failure.
 */
export async function releaseClaim(
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
  if (found === 1) await decrementDailyCount(tx, claim)
}

/** A mail that failed waits longer each time. */
export function pauseAfter(failures: number, now: RealTime): { failures: number; retryAt: RealTime } {
  const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** Math.min(failures, 10), LONGEST_PAUSE_MS)
  return { failures: failures + 1, retryAt: addMs(now, pauseMs) }
}

function heldBy({ reminderId, claimedAt }: Claim) {
  return { id: reminderId, status: 'claimed', claimedAt } as const
}

/** Ends a claim whose address does not exist: no sweep tries again while the customer has this address. */
export async function refuseClaim(tx: Tx, claim: Claim, address: string, lastError: string): Promise<void> {
  const found = await tx.update(reminders, heldBy(claim), {
    status: 'refused',
    handedOverAt: null,
    countedOn: null,
    refusedTo: address,
    lastError,
  })
  if (found === 1) await decrementDailyCount(tx, claim)
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
    [claim.reminderId, claim.claimedAt],
  )
  if (found === 1) await decrementDailyCount(tx, claim)
}

/** Records why a mail that was handed over is unconfirmed. */
export async function noteUnconfirmed(tx: Tx, claim: Claim, lastError: string): Promise<void> {
  await tx.update(reminders, heldBy(claim), { lastError })
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

/** Locked until the commit, so that of two decisions about it one is the first. */
export async function lockReminder(tx: Tx, reminderId: number): Promise<Reminder | null> {
  return tx.one(reminders, 'WHERE id = ? FOR UPDATE', [reminderId])
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

/** An app's subscriptions that end after `from` and no later than `until`, in the order of their ends. */
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

/** Receipts that are due by `now`, and follow `after`. */
export async function listDueReceipts(
  db: Queries,
  now: RealTime,
  after: Pick<Receipt, 'id' | 'nextTryAt'> | null,
  limit: number,
): Promise<Receipt[]> {
  const { sql, params } = where(
    [`status = 'due' AND next_try_at <= ?`, now],
    after && ['(next_try_at > ? OR (next_try_at = ? AND id > ?))', after.nextTryAt, after.nextTryAt, after.id],
  )
  return db.all(receipts, `${sql} ORDER BY next_try_at, id LIMIT ?`, [...params, limit])
}

/** Changes a receipt that is still as it was read; false if another sweep has it. */
export async function updateReceipt(
  tx: Tx,
  { id: receiptId, status, nextTryAt }: Receipt,
  changes: Partial<Pick<Receipt, 'status' | 'failures' | 'nextTryAt' | 'lastError' | 'sentAt'>>,
): Promise<boolean> {
  return (await tx.update(receipts, { id: receiptId, status, nextTryAt }, changes)) === 1
}

/** Locked until the commit, so that of two decisions about it one is the first. */
export async function lockReceipt(tx: Tx, receiptId: number): Promise<Receipt | null> {
  return tx.one(receipts, 'WHERE id = ? FOR UPDATE', [receiptId])
}

/** How long a sweep may keep a receipt from other sweeps; the hand-over begins the lease anew. */
export const RECEIPT_LEASE_MS = 2 * MINUTE_MS

/** When a mail was handed over that is not answered yet; null for others. */
export function handedOverAt(mail: Reminder | Receipt): RealTime | null {
  if ('claimedAt' in mail) return mail.status === 'claimed' ? mail.handedOverAt : null
  return mail.status === 'handed_over' ? addMs(mail.nextTryAt, -RECEIPT_LEASE_MS) : null
}

/** A reminder with the end user whose subscription it is about. */
export type ReminderWithOwner = Reminder & { readonly externalRef: string }
/** A receipt with what operators know its transaction by. */
export type ReceiptOfTransaction = Receipt & Pick<Transaction, 'externalRef' | 'currency'>

/** Mails that an operator looks after, as rows `r`. */
export interface Selection<Row> {
  readonly source: Source<Row>
  /** The table `r`, and those by which its rows are selected. */
  readonly from: string
  readonly joins: string
  readonly conditions: readonly Condition[]
  /** The newest in this column come first. */
  readonly column: string
  readonly timeOf: (row: Row) => RealTime
}

const OF_REMINDERS = {
  source: reminders.joined('r', { externalRef: exact('s.external_ref', 191) }),
  from: 'reminders r',
  column: 'r.claimed_at',
  timeOf: ({ claimedAt }: Reminder): RealTime => claimedAt,
}

/** Reminders that were handed over at `before` or earlier, and not answered since. */
export function unconfirmedReminders(before: RealTime): Selection<ReminderWithOwner> {
  return {
    ...OF_REMINDERS,
    joins: 'JOIN subscriptions s ON s.id = r.subscription_id',
    conditions: [[`r.status = 'claimed' AND r.handed_over_at <= ?`, before]],
  }
}

/** As `unconfirmedReminders`, of receipts. */
export function unconfirmedReceipts(before: RealTime): Selection<ReceiptOfTransaction> {
  return {
    source: receipts.joined('r', { externalRef: exact('t.external_ref', 191), currency: exact('t.currency', 3) }),
    from: 'receipts r',
    joins: 'JOIN transactions t ON t.id = r.transaction_id',
    conditions: [[`r.status = 'handed_over' AND r.next_try_at <= ?`, addMs(before, RECEIPT_LEASE_MS)]],
    column: 'r.next_try_at',
    timeOf: ({ nextTryAt }) => nextTryAt,
  }
}

/**
 * Reminders of current periods that were refused after `since` for the customer's present address. Subscriptions that were renewed or
 * opted out and those of disabled apps are left out.
 */
export function refusedReminders(since: RealTime): Selection<ReminderWithOwner> {
  return {
    ...OF_REMINDERS,
    joins: `JOIN subscriptions s ON s.id = r.subscription_id AND s.current_period_end = r.period_end
     JOIN customers c ON c.id = s.customer_id AND c.email = r.refused_to
     JOIN apps a ON a.id = s.app_id`,
    conditions: [
      [`r.status = 'refused' AND r.claimed_at >= ?`, since],
      ['s.reminders_stopped_at IS NULL AND a.disabled_at IS NULL'],
    ],
  }
}

/** A page of the selected mails, newest first. */
export async function listSelected<Row>(
  db: Queries,
  { source, joins, conditions, column }: Selection<Row>,
  page: { readonly below: Position | null; readonly limit: number },
): Promise<Row[]> {
  const { sql, params } = where(...conditions, below(page.below, column))
  return db.all(source, `${joins} ${sql} ORDER BY ${column} DESC, r.id DESC LIMIT ?`, [...params, page.limit])
}

/** How many `listSelected` lists in all. */
export async function countSelected(
  db: Queries,
  { from, joins, conditions }: Pick<Selection<unknown>, 'from' | 'joins' | 'conditions'>,
): Promise<number> {
  const { sql, params } = where(...conditions)
  const counted = await db.one(
    shape({ mails: bigint() }),
    `SELECT COUNT(*) AS mails FROM ${from} ${joins} ${sql}`,
    params,
  )
  return counted?.mails ?? 0
}
