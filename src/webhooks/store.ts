import { appTime, bigint, bytes, exact, flag, id, int, longtext, realTime, text, words } from '#db/columns.ts'
import { above, below, idAmong, where, type Position } from '#db/conditions.ts'
import { shape, table, type Row } from '#db/table.ts'
import type { Param, Queries } from '#db/queries.ts'
import { databasePresent, type Present } from '#db/database-now.ts'
import type { Tx } from '#commands/transaction.ts'
import { notFound } from '#shared/errors.ts'
import type { AppTime, RealTime } from '#shared/time.ts'
import { envelopeOf } from './envelope.ts'
import type { EventType } from './events.ts'

/** The delivery of an event. `not_configured`: the app has no webhook address or no webhook secret. */
export type DeliveryStatus = 'pending' | 'delivered' | 'failed' | 'not_configured'

/** An event of an app. `body` never changes, so `envelopeOf` returns the same bytes for every attempt. */
export const events = table('events', {
  id: id(),
  appId: bigint('app_id'),
  eventType: exact('event_type', 64),
  externalRef: exact('external_ref', 191).nullable(),
  transactionId: bigint('transaction_id').nullable(),
  body: bytes('body'),
  /** Whether the envelope contains the id. */
  carriesId: flag('carries_id'),
  deliveryStatus: exact('delivery_status', 16).as<DeliveryStatus>(),
  /** Attempts begun so far, automatic ones and replays. */
  attempts: int('attempts'),
  /** Automatic attempts that may follow the current one. */
  retriesLeft: int('retries_left'),
  /** When it is due. A lease does not change it, because each change writes an index. Claims read past leased events instead. */
  nextAttemptAt: realTime('next_attempt_at').nullable(),
  /** The random number of the claim that leases it; 0 if none does. */
  lease: bigint('lease'),
  /** The end of the last lease; before the first one, the time of writing; null once no attempt follows. */
  leaseUntil: realTime('lease_until').nullable(),
  /** Whether a request has begun under the current or an expired lease, so that its attempt counts. */
  begun: flag('begun'),
  deliveredAt: realTime('delivered_at').nullable(),
  lastError: words('last_error', 500).nullable(),
  /** The app's own time, which the envelope shows and a test clock moves. */
  createdAt: appTime('created_at'),
  /** Real time, which deliveries use. */
  writtenAt: realTime('written_at'),
})
export type Event = Row<typeof events>

/** One delivery attempt. `httpStatus` is null without an answer; `error` is null if the app acknowledged. */
export const deliveryAttempts = table('delivery_attempts', {
  id: id(),
  eventId: bigint('event_id'),
  attempt: int('attempt'),
  startedAt: realTime('started_at'),
  durationMs: int('duration_ms'),
  httpStatus: int('http_status').nullable(),
  error: words('error', 500).nullable(),
  /** The beginning of the answer's body, without control characters. */
  responseHead: longtext('response_head').nullable(),
})
export type DeliveryAttempt = Row<typeof deliveryAttempts>

export interface NewEvent {
  readonly appId: number
  readonly eventType: string
  readonly externalRef: string | null
  readonly transactionId: number | null
  readonly body: Buffer
  readonly deliveryStatus: 'pending' | 'not_configured'
  readonly createdAt: AppTime
  readonly writtenAt: RealTime
  /** How many automatic attempts may follow the first. */
  readonly retries: number
}

/** Due at once for every daemon, even if our own clock is ahead of the database's. */
const AT_ONCE = 'LEAST(?, UTC_TIMESTAMP(3))'

/** Writes an event; returns its id. A pending event is due at once. */
export async function insertEvent(tx: Tx, event: NewEvent): Promise<number> {
  return tx.insert(events, rowOf(event), { nextAttemptAt: AT_ONCE })
}

/** Writes several events. */
export async function insertEvents(tx: Tx, news: readonly NewEvent[]): Promise<void> {
  await tx.insertAll(events, news.map(rowOf), { nextAttemptAt: AT_ONCE })
}

function rowOf(event: NewEvent): Omit<Event, 'id'> {
  const { retries, ...values } = event
  return {
    ...values,
    carriesId: true,
    attempts: 0,
    retriesLeft: retries,
    nextAttemptAt: event.deliveryStatus === 'pending' ? event.writtenAt : null,
    lease: 0,
    // Columns that a claim changes get a value now: InnoDB moves a row that grows within its page, which was most of the cost of a claim.
    leaseUntil: event.deliveryStatus === 'pending' ? event.writtenAt : null,
    begun: false,
    deliveredAt: null,
    lastError: null,
  }
}

export async function findEvent(db: Queries, eventId: number): Promise<Event | null> {
  return db.one(events, 'WHERE id = ?', [eventId])
}

/** An event of the app; throws `not_found`. */
export async function getEvent(db: Queries, appId: number, eventId: number): Promise<Event> {
  const event = await db.one(events, 'WHERE id = ? AND app_id = ?', [eventId, appId])
  if (!event) throw notFound('event')
  return event
}

export interface EventFilter {
  readonly appId: number
  readonly status: DeliveryStatus | null
  readonly eventType: EventType | null
  readonly externalRef: string | null
  /** Created then or later, in the app's own time. */
  readonly since: AppTime | null
  readonly order: 'asc' | 'desc'
  /** Only events after this one in that order. */
  readonly behind: Position | null
  readonly limit: number
}

/** Events of an app, by the time when they were created. */
export async function listEventRows(db: Queries, filter: EventFilter): Promise<Event[]> {
  const { appId, status, eventType, externalRef, since, order, behind } = filter
  const listed = where(
    ['app_id = ?', appId],
    status === null ? null : ['delivery_status = ?', status],
    eventType === null ? null : ['event_type = ?', eventType],
    externalRef === null ? null : ['external_ref = ?', externalRef],
    since && ['created_at >= ?', since],
    order === 'asc' ? above(behind) : below(behind),
  )
  const direction = order === 'asc' ? 'ASC' : 'DESC'
  return db.all(events, `${indexOf(filter)}${listed.sql} ORDER BY created_at ${direction}, id ${direction} LIMIT ?`, [
    ...listed.params,
    filter.limit,
  ])
}

/** Without this hint, servers read all events of the app in the order of the list, and skip those that do not match. */
function indexOf({ eventType, externalRef }: EventFilter): string {
  if (externalRef !== null) return 'FORCE INDEX (events_app_ref) '
  return eventType === null ? '' : 'FORCE INDEX (events_app_type) '
}

/** The highest id of all events; 0 if there is none. */
export async function lastEventId(db: Queries): Promise<number> {
  const [{ last }] = (await db.all(shape({ last: bigint() }), 'SELECT COALESCE(MAX(id), 0) AS last FROM events')) as [
    { last: number },
  ]
  return last
}

/** The newest events over all apps. */
export async function listNewestEvents(db: Queries, limit: number): Promise<Event[]> {
  return db.all(events, 'ORDER BY id DESC LIMIT ?', [limit])
}

/**
 * The ids of the app's events that were written since a time, and of those with an id above `above`, ascending. A writer whose clock is
 * behind dates events too early, but their ids show that they are new.
 */
export async function listEventIdsSince(db: Queries, appId: number, since: RealTime, above: number): Promise<number[]> {
  // An app's own time is never behind real time, so the index on `created_at` narrows the search.
  const rows = await db.all(
    shape({ id: id() }),
    `SELECT id FROM events WHERE app_id = ? AND created_at >= ? AND written_at >= ?
     UNION SELECT id FROM events WHERE app_id = ? AND id > ? ORDER BY id`,
    [appId, since, since, appId, above],
  )
  return rows.map((event) => event.id)
}

/** The events with these ids, oldest first. */
export async function listEventsById(db: Queries, eventIds: readonly number[]): Promise<Event[]> {
  const among = idAmong(eventIds)
  return db.all(events, `WHERE ${among.sql} ORDER BY id`, among.params)
}

/** Events about an end user, oldest first. */
export async function listEventsOfEndUser(
  db: Queries,
  appId: number,
  externalRef: string,
  limit: number,
): Promise<Event[]> {
  return db.all(events, 'WHERE app_id = ? AND external_ref = ? ORDER BY id LIMIT ?', [appId, externalRef, limit])
}

export async function listAttempts(db: Queries, eventId: number): Promise<DeliveryAttempt[]> {
  return db.all(deliveryAttempts, 'WHERE event_id = ? ORDER BY id', [eventId])
}

/** When the earliest undelivered event of an app is due. */
export interface DueApp {
  readonly appId: number
  readonly dueAt: RealTime
  readonly isDue: boolean
}

/**
 * Every app with pending events, and when the first of them is due: one index lookup for each app. A GROUP BY over the events may read all
 * of them, including delivered ones, if the server estimates that they are few. The ORDER BY differs between the servers. With only the
 * last column of the index, MySQL reads all pending events; with all columns, MariaDB does in a prepared statement.
 */
export const FIRST_DUE = `SELECT a.id AS appId,
    (SELECT e.next_attempt_at FROM events e FORCE INDEX (events_app_due)
     WHERE e.app_id = a.id AND e.delivery_status = 'pending'
     ORDER BY /*!50708 e.app_id, e.delivery_status, */ e.next_attempt_at LIMIT 1) AS dueAt
  FROM apps a HAVING dueAt IS NOT NULL`

/** Every app with pending events. */
export async function listAppsWithPending(db: Queries, now: Present): Promise<DueApp[]> {
  return db.all(
    shape({ appId: bigint(), dueAt: realTime(), isDue: flag() }),
    `SELECT appId, dueAt, dueAt <= ${now.sql} AS isDue FROM (${FIRST_DUE}) waiting`,
    now.params,
  )
}

/** A due event that may be claimed. */
export interface DueEvent {
  readonly id: number
  readonly appId: number
}

/** The condition for a claim: due, and without a running lease. */
function claimable(now: Present): { sql: string; params: Param[] } {
  return {
    sql: `delivery_status = 'pending' AND next_attempt_at <= ${now.sql} AND (lease = 0 OR lease_until <= ${now.sql})`,
    params: [...now.params, ...now.params],
  }
}

/** The claimable events of each app that have been due longest, at most `limit` per app. */
export async function listDue(
  db: Queries,
  appIds: readonly number[],
  limit: number,
  now: Present,
): Promise<DueEvent[]> {
  const due = claimable(now)
  const parts = appIds.map(
    () => `(SELECT id, app_id AS appId FROM events FORCE INDEX (events_app_due)
            WHERE app_id = ? AND ${due.sql} ORDER BY next_attempt_at, id LIMIT ?)`,
  )
  return db.all(
    shape({ id: id(), appId: bigint() }),
    parts.join(' UNION ALL '),
    appIds.flatMap((appId) => [appId, ...due.params, limit]),
  )
}

/** The lease of the claim `token`. It begins now, by the database's clock. */
export interface Lease {
  readonly token: number
  readonly ms: number
}

/** An event that only this process may send until its lease ends. */
export interface ClaimedEvent {
  readonly id: number
  readonly appId: number
  readonly eventType: string
  /** The bytes to send. */
  readonly body: Buffer
  /** The number of the attempt that may begin under the lease. */
  readonly attempt: number
  readonly retriesLeft: number
  readonly lease: number
}

/**
 * Leases the events that are still due, by a conditional UPDATE, so that one of several daemons wins each row. Taking over an event whose
 * request had begun costs one retry; an event without retries is left to `failLost`. Each statement is a separate transaction: called again
 * with the same lease, it returns the same events.
 */
export async function claimDue(
  db: Queries,
  candidates: readonly DueEvent[],
  lease: Lease,
  now: Present,
): Promise<ClaimedEvent[]> {
  if (candidates.length === 0) return []
  const among = idAmong(candidates.map(({ id }) => id))
  const leased = leasing(now, lease)
  const due = claimable(now)
  // Assignments run from left to right, so the first one reads the old value of `begun`.
  await db.run(
    `UPDATE events SET retries_left = retries_left - begun, begun = 0, ${leased.sql}
     WHERE ${among.sql} AND ${due.sql} AND (begun = 0 OR retries_left > 0)`,
    [...leased.params, ...among.params, ...due.params],
  )
  return listClaimed(db, lease, candidates)
}

/** The assignments that begin a lease. */
function leasing(now: Present, { token, ms }: Lease): { sql: string; params: Param[] } {
  return {
    sql: `lease = ?, lease_until = ${now.sql} + INTERVAL ? MICROSECOND`,
    params: [token, ...now.params, ms * 1000],
  }
}

/** Fails the events whose last attempt was interrupted: `claimDue` never claims them. Returns how many. */
export async function failLost(tx: Tx, eventIds: readonly number[]): Promise<number> {
  const due = claimable(databasePresent(tx.ctx))
  return tx.run(
    `UPDATE events SET delivery_status = 'failed', last_error = 'interrupted', next_attempt_at = NULL, ${NO_MORE}
     WHERE id IN (?) AND ${due.sql} AND begun = 1 AND retries_left = 0`,
    [eventIds, ...due.params],
  )
}

const claimedRow = shape({
  id: id(),
  appId: bigint(),
  eventType: text(),
  body: bytes(),
  carriesId: flag(),
  attempt: int(),
  retriesLeft: int(),
})

async function listClaimed(db: Queries, lease: Lease, candidates: readonly DueEvent[]): Promise<ClaimedEvent[]> {
  const among = idAmong(candidates.map(({ id }) => id))
  const rows = await db.all(
    claimedRow,
    `SELECT id, app_id AS appId, event_type AS eventType, body, carries_id AS carriesId, attempts + 1 AS attempt, retries_left AS retriesLeft
     FROM events WHERE ${among.sql} AND lease = ?`,
    [...among.params, lease.token],
  )
  const claimed = rows.map(({ carriesId, ...row }) => ({
    ...row,
    body: envelopeOf({ id: row.id, body: row.body, carriesId }),
    lease: lease.token,
  }))
  const order = new Map(candidates.map(({ id }, index) => [id, index]))
  return claimed.sort((a, b) => (order.get(a.id) ?? 0) - (order.get(b.id) ?? 0))
}

/**
 * Charges the attempts of one lease whose requests begin now. Returns the ids of events whose lease is still held; another sender has taken
 * over the others. Each statement is a separate transaction: called again, it charges nothing twice.
 */
export async function chargeAttempts(
  db: Queries,
  lease: number,
  eventIds: readonly number[],
): Promise<readonly number[]> {
  const among = idAmong(eventIds)
  const charged = await db.run(
    `UPDATE events SET attempts = attempts + 1, begun = 1 WHERE ${among.sql} AND lease = ? AND begun = 0`,
    [...among.params, lease],
  )
  if (charged === eventIds.length) return eventIds
  const held = await db.all(
    shape({ id: id() }),
    `SELECT id FROM events WHERE ${among.sql} AND lease = ? AND begun = 1`,
    [...among.params, lease],
  )
  return held.map((event) => event.id)
}

/** Ends a lease; another attempt may follow. */
const NO_LEASE = 'lease = 0, begun = 0'
/** Ends a lease; no attempt follows. */
const NO_MORE = 'lease = 0, begun = 0, lease_until = NULL'

/** Changes the events whose lease is still held; returns how many. */
async function setHeld(
  tx: Tx,
  lease: number,
  eventIds: readonly number[],
  assignments: string,
  values: readonly Param[] = [],
): Promise<number> {
  const among = idAmong(eventIds)
  return tx.run(`UPDATE events SET ${assignments} WHERE ${among.sql} AND lease = ?`, [
    ...values,
    ...among.params,
    lease,
  ])
}

/** Ends leases after success; returns how many were still held. */
export async function markDelivered(tx: Tx, lease: number, eventIds: readonly number[]): Promise<number> {
  const assignments = `delivery_status = 'delivered', delivered_at = ?, last_error = NULL, next_attempt_at = NULL, ${NO_MORE}`
  return setHeld(tx, lease, eventIds, assignments, [tx.now])
}

/** Ends leases after failed attempts: due again at `retryAt`, with one retry less. Returns how many were still held. */
export async function markRetried(
  tx: Tx,
  lease: number,
  eventIds: readonly number[],
  retryAt: RealTime,
  error: string,
): Promise<number> {
  const assignments = `retries_left = retries_left - 1, next_attempt_at = ?, last_error = ?, ${NO_LEASE}`
  return setHeld(tx, lease, eventIds, assignments, [retryAt, error])
}

/** Ends leases after a failed last attempt. Returns how many were still held. */
export async function markFailed(tx: Tx, lease: number, eventIds: readonly number[], error: string): Promise<number> {
  const assignments = `delivery_status = 'failed', next_attempt_at = NULL, last_error = ?, ${NO_MORE}`
  return setHeld(tx, lease, eventIds, assignments, [error])
}

/**
 * Makes events of any status due again, with all retries. Keeps the time of an earlier delivery. Skips events that are leased at `now`, by
 * the database's clock. Returns how many changed.
 */
export async function requeue(tx: Tx, eventIds: readonly number[], retries: number, now: RealTime): Promise<number> {
  return tx.run(
    `UPDATE events SET delivery_status = 'pending', retries_left = ?, next_attempt_at = ?, ${NO_LEASE}
     WHERE id IN (?) AND (lease = 0 OR lease_until <= ?)`,
    [retries, now, eventIds, now],
  )
}

export async function countFailedEvents(db: Queries, appId: number): Promise<number> {
  return db.count(events, `WHERE app_id = ? AND delivery_status = 'failed'`, [appId])
}

/** As `requeue`, for events that are still failed: another operator may have been faster, and the app's server may have answered since. */
export async function requeueFailed(
  tx: Tx,
  eventIds: readonly number[],
  retries: number,
  now: RealTime,
): Promise<number> {
  return tx.run(
    `UPDATE events SET delivery_status = 'pending', retries_left = ?, next_attempt_at = ?, ${NO_LEASE}
     WHERE id IN (?) AND delivery_status = 'failed'`,
    [retries, now, eventIds],
  )
}

/** The ids of an app's failed events, oldest first. `next_attempt_at` is NULL for all, so the index returns them by id. */
export async function listFailedIds(db: Queries, appId: number, limit: number): Promise<number[]> {
  const rows = await db.all(
    shape({ id: id() }),
    `SELECT id FROM events WHERE app_id = ? AND delivery_status = 'failed' AND next_attempt_at IS NULL ORDER BY id LIMIT ?`,
    [appId, limit],
  )
  return rows.map(({ id }) => id)
}

/** Leases an event that has had no attempt, and charges its first attempt, which begins at once. */
export async function leaseNew(tx: Tx, eventId: number, lease: Lease): Promise<void> {
  const leased = leasing(databasePresent(tx.ctx), lease)
  await tx.run(
    `UPDATE events SET attempts = 1, begun = 1, ${leased.sql} WHERE id = ? AND delivery_status = 'pending' AND lease = 0`,
    [...leased.params, eventId],
  )
}

/** Ends leases of events whose requests did not begin. Their due time stays. */
export async function releaseLeases(tx: Tx, lease: number, eventIds: readonly number[]): Promise<void> {
  await setHeld(tx, lease, eventIds, NO_LEASE)
}

/** Ends leases of events that could not be sent for a reason on our side. They are due again at `nextAttemptAt`. */
export async function postpone(
  tx: Tx,
  lease: number,
  eventIds: readonly number[],
  nextAttemptAt: RealTime,
  error: string,
): Promise<number> {
  const assignments = `next_attempt_at = ?, last_error = ?, ${NO_LEASE}`
  return setHeld(tx, lease, eventIds, assignments, [nextAttemptAt, error])
}

/** Ends leases of events whose app no longer has a webhook. They are kept and not delivered. */
export async function markNotConfigured(tx: Tx, lease: number, eventIds: readonly number[]): Promise<number> {
  const assignments = `delivery_status = 'not_configured', next_attempt_at = NULL, ${NO_MORE}`
  return setHeld(tx, lease, eventIds, assignments)
}

export type NewAttempt = Omit<DeliveryAttempt, 'id'>

export async function insertAttempts(tx: Tx, attempts: readonly NewAttempt[]): Promise<void> {
  await tx.insertAll(deliveryAttempts, attempts)
}

/** Whether an attempt is recorded; waits for a transaction that is recording it. */
export async function hasAttempt(tx: Tx, { eventId, attempt, startedAt }: NewAttempt): Promise<boolean> {
  const condition = 'WHERE event_id = ? AND attempt = ? AND started_at = ? FOR UPDATE'
  return (await tx.all(deliveryAttempts, condition, [eventId, attempt, startedAt])).length > 0
}

/** Removes attempts that began before `before`, among the `limit` oldest; returns how many. */
export async function deleteOldAttempts(tx: Tx, before: RealTime, limit: number): Promise<number> {
  const oldest = await tx.all(
    shape({ id: id(), startedAt: realTime() }),
    'SELECT id, started_at AS startedAt FROM delivery_attempts ORDER BY id LIMIT ?',
    [limit],
  )
  const ids = oldest.filter(({ startedAt }) => startedAt < before).map((attempt) => attempt.id)
  if (ids.length > 0) await tx.run('DELETE FROM delivery_attempts WHERE id IN (?)', [ids])
  return ids.length
}

/** Where an app's webhooks go, and the sealed secret that signs them. */
export interface WebhookTarget {
  readonly appId: number
  readonly apiKey: string
  readonly webhookUrl: string | null
  readonly webhookSecret: string | null
}

const webhookTarget = shape({
  appId: bigint(),
  apiKey: text(),
  webhookUrl: text().nullable(),
  webhookSecret: text().nullable(),
})

export async function listWebhookTargets(db: Queries, appIds: readonly number[]): Promise<WebhookTarget[]> {
  return db.all(
    webhookTarget,
    `SELECT id AS appId, api_key AS apiKey, webhook_url AS webhookUrl, webhook_secret AS webhookSecret
     FROM apps WHERE id IN (?)`,
    [appIds],
  )
}

/** The events about a transaction, in writing order. */
export async function listEventsOfTransaction(db: Queries, transactionId: number): Promise<Event[]> {
  return db.all(events, 'WHERE transaction_id = ? ORDER BY id', [transactionId])
}
