import { EntitySchema, In } from 'typeorm'
import * as column from '#db/columns.ts'
import type { ReadOnly, Tx } from '#db/transaction.ts'
import { notFound } from '#shared/errors.ts'

/** Where an event stands on its way to the app. `not_configured`: the app has no webhook address or no webhook secret. */
export type DeliveryStatus = 'pending' | 'delivered' | 'failed' | 'not_configured'

/** Something an app is told. `body` is frozen: every attempt sends the same bytes. */
export interface Event {
  readonly id: number
  readonly appId: number
  readonly eventType: string
  readonly externalRef: string | null
  readonly transactionId: number | null
  readonly body: Buffer
  readonly deliveryStatus: DeliveryStatus
  /** Attempts begun so far, automatic ones and replays. */
  readonly attempts: number
  /** Automatic attempts that may follow the present one. */
  readonly retriesLeft: number
  /** When it is due; while an attempt runs, when its lease ends, so that what is leased is not due. */
  readonly nextAttemptAt: Date | null
  readonly leaseToken: string | null
  readonly leaseUntil: Date | null
  readonly deliveredAt: Date | null
  readonly lastError: string | null
  /** The app's own time, which the envelope shows; a test clock moves it. */
  readonly createdAt: Date
  /** Real time: deliveries go by it. */
  readonly writtenAt: Date
}

export const events = new EntitySchema<Event>({
  name: 'events',
  columns: {
    id: column.id,
    appId: column.bigint('app_id'),
    eventType: column.exact('event_type', 64),
    externalRef: column.nullable(column.exact('external_ref', 191)),
    transactionId: column.nullable(column.bigint('transaction_id')),
    body: column.bytes('body'),
    deliveryStatus: column.exact('delivery_status', 16),
    attempts: column.int('attempts'),
    retriesLeft: column.int('retries_left'),
    nextAttemptAt: column.nullable(column.instant('next_attempt_at')),
    leaseToken: column.nullable(column.exact('lease_token', 64)),
    leaseUntil: column.nullable(column.instant('lease_until')),
    deliveredAt: column.nullable(column.instant('delivered_at')),
    lastError: column.nullable(column.words('last_error', 500)),
    createdAt: column.instant('created_at'),
    writtenAt: column.instant('written_at'),
  },
})

/** One try to hand an event over. `httpStatus` is null where no answer came; `error` is null where the app acknowledged. */
export interface DeliveryAttempt {
  readonly id: number
  readonly eventId: number
  readonly attempt: number
  readonly startedAt: Date
  readonly durationMs: number
  readonly httpStatus: number | null
  readonly error: string | null
  /** The beginning of the answer's body as clean text. */
  readonly responseHead: string | null
}

export const deliveryAttempts = new EntitySchema<DeliveryAttempt>({
  name: 'delivery_attempts',
  columns: {
    id: column.id,
    eventId: column.bigint('event_id'),
    attempt: column.int('attempt'),
    startedAt: column.instant('started_at'),
    durationMs: column.int('duration_ms'),
    httpStatus: column.nullable(column.int('http_status')),
    error: column.nullable(column.words('error', 500)),
    responseHead: column.nullable(column.longtext('response_head')),
  },
})

export interface NewEvent {
  readonly appId: number
  readonly eventType: string
  readonly externalRef: string | null
  readonly transactionId: number | null
  readonly body: Buffer
  readonly deliveryStatus: 'pending' | 'not_configured'
  readonly createdAt: Date
  readonly writtenAt: Date
  /** How many automatic attempts may follow the first. */
  readonly retries: number
}

/** Writes an event, due at once where it is to be delivered. Returns its id. */
export async function insertEvent(tx: Tx, event: NewEvent): Promise<number> {
  const result: { insertId: number } = await tx.manager.query(
    `INSERT INTO events (app_id, event_type, external_ref, transaction_id, body, delivery_status,
       attempts, retries_left, next_attempt_at, created_at, written_at)
     VALUES (?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?)`,
    [
      event.appId,
      event.eventType,
      event.externalRef,
      event.transactionId,
      event.body,
      event.deliveryStatus,
      event.retries,
      event.deliveryStatus === 'pending' ? event.writtenAt : null,
      event.createdAt,
      event.writtenAt,
    ],
  )
  return result.insertId
}

export async function findEvent(db: ReadOnly, eventId: number): Promise<Event | null> {
  return db.manager.findOneBy(events, { id: eventId })
}

/** An event of the app; throws `not_found`. */
export async function getEvent(db: ReadOnly, appId: number, eventId: number): Promise<Event> {
  const event = await db.manager.findOneBy(events, { id: eventId, appId })
  if (!event) throw notFound('event')
  return event
}

export interface EventFilter {
  readonly appId: number
  readonly status: DeliveryStatus | null
  readonly below: { readonly createdAt: Date; readonly id: number } | null
  readonly limit: number
}

/** Events of an app, newest first. */
export async function listEventRows(db: ReadOnly, filter: EventFilter): Promise<Event[]> {
  const query = db.manager
    .createQueryBuilder(events, 'e')
    .where('e.appId = :appId', { appId: filter.appId })
    .orderBy('e.createdAt', 'DESC')
    .addOrderBy('e.id', 'DESC')
  if (filter.status !== null) query.andWhere('e.deliveryStatus = :status', { status: filter.status })
  if (filter.below) {
    const { createdAt, id: belowId } = filter.below
    query.andWhere('(e.createdAt < :createdAt OR (e.createdAt = :createdAt AND e.id < :belowId))', {
      createdAt,
      belowId,
    })
  }
  return query.limit(filter.limit).getMany()
}

export async function listAttempts(db: ReadOnly, eventId: number): Promise<DeliveryAttempt[]> {
  return db.manager.find(deliveryAttempts, { where: { eventId }, order: { id: 'ASC' } })
}

/** When the earliest undelivered event of an app is due. */
export interface DueApp {
  readonly appId: number
  readonly dueAt: Date
}

/** Every app with events to deliver, now or later: one index jump for each app, however many events wait. */
export async function listAppsWithPending(db: ReadOnly): Promise<DueApp[]> {
  return db.manager.query(
    `SELECT app_id AS appId, MIN(next_attempt_at) AS dueAt FROM events
     WHERE delivery_status = 'pending' GROUP BY app_id`,
  )
}

/** A due event that may be claimed; `isLost`: its last attempt was cut short, so that it can only be failed. */
export interface DueEvent {
  readonly id: number
  readonly appId: number
  readonly isLost: boolean
}

/** The events of each app that are due longest, `limit` of each at most. */
export async function listDue(db: ReadOnly, appIds: readonly number[], limit: number, now: Date): Promise<DueEvent[]> {
  const parts = appIds.map(
    () => `(SELECT id, app_id AS appId, lease_token IS NOT NULL AND retries_left = 0 AS isLost FROM events
            WHERE app_id = ? AND delivery_status = 'pending' AND next_attempt_at <= ?
            ORDER BY next_attempt_at, id LIMIT ?)`,
  )
  const rows: { id: number; appId: number; isLost: number }[] = await db.manager.query(
    parts.join(' UNION ALL '),
    appIds.flatMap((appId) => [appId, now, limit]),
  )
  return rows.map((row) => ({ ...row, isLost: row.isLost === 1 }))
}

export interface Lease {
  readonly token: string
  readonly until: Date
}

/** An event that this process alone may send, until `leaseUntil`. */
export interface ClaimedEvent {
  readonly id: number
  readonly appId: number
  readonly eventType: string
  readonly body: Buffer
  /** The number of the attempt that the claim stands for. */
  readonly attempt: number
  readonly retriesLeft: number
  readonly leaseToken: string
  readonly leaseUntil: Date
}

/**
 * Leases those of the events that are still due, by a conditional UPDATE, so that of several daemons one wins each row. The claim
 * counts the attempt; to take over a lease that ran out costs one retry besides, and an event without any is failed. So senders
 * that crash again and again make no more automatic attempts than senders that live.
 */
export async function claimDue(
  tx: Tx,
  candidates: readonly DueEvent[],
  lease: Lease,
): Promise<{ claimed: ClaimedEvent[]; lost: number }> {
  const lostIds = candidates.filter(({ isLost }) => isLost).map(({ id }) => id)
  const ids = candidates.filter(({ isLost }) => !isLost).map(({ id }) => id)
  const lost = lostIds.length === 0 ? 0 : await failLost(tx, lostIds)
  if (ids.length === 0) return { claimed: [], lost }
  // The first assignment reads the old lease_token: assignments run from left to right.
  await tx.manager.query(
    `UPDATE events SET retries_left = retries_left - (lease_token IS NOT NULL), attempts = attempts + 1,
       lease_token = ?, lease_until = ?, next_attempt_at = ?
     WHERE id IN (?) AND delivery_status = 'pending' AND next_attempt_at <= ?
       AND (lease_token IS NULL OR retries_left > 0)`,
    [lease.token, lease.until, lease.until, ids, tx.now],
  )
  return { claimed: await listClaimed(tx, lease, ids), lost }
}

async function failLost(tx: Tx, eventIds: readonly number[]): Promise<number> {
  const result: { affectedRows: number } = await tx.manager.query(
    `UPDATE events SET delivery_status = 'failed', last_error = 'interrupted', next_attempt_at = NULL,
       lease_token = NULL, lease_until = NULL
     WHERE id IN (?) AND delivery_status = 'pending' AND next_attempt_at <= ?
       AND lease_token IS NOT NULL AND retries_left = 0`,
    [eventIds, tx.now],
  )
  return result.affectedRows
}

async function listClaimed(tx: Tx, lease: Lease, candidateIds: readonly number[]): Promise<ClaimedEvent[]> {
  const rows: {
    id: number
    appId: number
    eventType: string
    body: Buffer
    attempts: number
    retriesLeft: number
  }[] = await tx.manager.query(
    `SELECT id, app_id AS appId, event_type AS eventType, body, attempts, retries_left AS retriesLeft
     FROM events WHERE id IN (?) AND lease_token = ?`,
    [candidateIds, lease.token],
  )
  const claimed = rows.map(({ attempts, ...row }) => ({
    ...row,
    attempt: attempts,
    leaseToken: lease.token,
    leaseUntil: lease.until,
  }))
  const order = new Map(candidateIds.map((id, index) => [id, index]))
  return claimed.sort((a, b) => (order.get(a.id) ?? 0) - (order.get(b.id) ?? 0))
}

const NO_LEASE = 'lease_token = NULL, lease_until = NULL'

/** Ends leases with success; returns how many of them were still held. */
export async function markDelivered(tx: Tx, leaseToken: string, eventIds: readonly number[]): Promise<number> {
  const result: { affectedRows: number } = await tx.manager.query(
    `UPDATE events SET delivery_status = 'delivered', delivered_at = ?, last_error = NULL, next_attempt_at = NULL, ${NO_LEASE}
     WHERE id IN (?) AND lease_token = ?`,
    [tx.now, eventIds, leaseToken],
  )
  return result.affectedRows
}

/** Ends a lease after a failed attempt: due again at `retryAt`, or failed for good where that is null. False where it was lost. */
export async function markFailed(
  tx: Tx,
  event: Pick<ClaimedEvent, 'id' | 'leaseToken' | 'retriesLeft'>,
  retryAt: Date | null,
  error: string,
): Promise<boolean> {
  const result: { affectedRows: number } = await tx.manager.query(
    `UPDATE events SET delivery_status = ?, retries_left = ?, next_attempt_at = ?, last_error = ?, ${NO_LEASE}
     WHERE id = ? AND lease_token = ?`,
    [
      retryAt ? 'pending' : 'failed',
      retryAt ? event.retriesLeft - 1 : event.retriesLeft,
      retryAt,
      error,
      event.id,
      event.leaseToken,
    ],
  )
  return result.affectedRows === 1
}

/**
 * Makes events due again, with all retries before them, whatever became of them so far; when they were delivered before stays known.
 * Leaves those that are under way alone.
 * Returns how many.
 */
export async function requeue(tx: Tx, eventIds: readonly number[], retries: number): Promise<number> {
  const result: { affectedRows: number } = await tx.manager.query(
    `UPDATE events SET delivery_status = 'pending', retries_left = ?, next_attempt_at = ?, ${NO_LEASE}
     WHERE id IN (?) AND (lease_token IS NULL OR lease_until <= ?)`,
    [retries, tx.now, eventIds, tx.now],
  )
  return result.affectedRows
}

/** The ids of an app's failed events, the oldest first. */
export async function listFailedIds(tx: Tx, appId: number, limit: number): Promise<number[]> {
  const rows: { id: number }[] = await tx.manager.query(
    `SELECT id FROM events WHERE app_id = ? AND delivery_status = 'failed' ORDER BY id LIMIT ?`,
    [appId, limit],
  )
  return rows.map(({ id }) => id)
}

/** Leases one event that nobody has begun to deliver; the lease is the event's first attempt. */
export async function leaseNew(tx: Tx, eventId: number, lease: Lease): Promise<void> {
  await tx.manager.query(
    `UPDATE events SET attempts = 1, lease_token = ?, lease_until = ?, next_attempt_at = ?
     WHERE id = ? AND delivery_status = 'pending' AND lease_token IS NULL`,
    [lease.token, lease.until, lease.until, eventId],
  )
}

/** Ends leases of events that were not sent: due at once, and the attempt does not count. */
export async function giveBack(tx: Tx, leaseToken: string, eventIds: readonly number[]): Promise<void> {
  await tx.manager.query(
    `UPDATE events SET attempts = attempts - 1, next_attempt_at = ?, ${NO_LEASE} WHERE id IN (?) AND lease_token = ?`,
    [tx.now, eventIds, leaseToken],
  )
}

/** Ends leases of events whose app has no webhook any more: kept, not delivered, the attempt does not count. */
export async function markNotConfigured(tx: Tx, leaseToken: string, eventIds: readonly number[]): Promise<number> {
  const result: { affectedRows: number } = await tx.manager.query(
    `UPDATE events SET delivery_status = 'not_configured', attempts = attempts - 1, next_attempt_at = NULL, ${NO_LEASE}
     WHERE id IN (?) AND lease_token = ?`,
    [eventIds, leaseToken],
  )
  return result.affectedRows
}

export async function insertAttempts(tx: Tx, attempts: readonly Omit<DeliveryAttempt, 'id'>[]): Promise<void> {
  await tx.manager.query(
    `INSERT INTO delivery_attempts (event_id, attempt, started_at, duration_ms, http_status, error, response_head)
     VALUES ?`,
    [
      attempts.map((row) => [
        row.eventId,
        row.attempt,
        row.startedAt,
        row.durationMs,
        row.httpStatus,
        row.error,
        row.responseHead,
      ]),
    ],
  )
}

/** Removes those of the `limit` oldest attempts that began before `before`; returns how many. */
export async function deleteOldAttempts(tx: Tx, before: Date, limit: number): Promise<number> {
  const oldest = await tx.manager.find(deliveryAttempts, {
    select: { id: true, startedAt: true },
    order: { id: 'ASC' },
    take: limit,
  })
  const ids = oldest.filter(({ startedAt }) => startedAt < before).map(({ id }) => id)
  if (ids.length > 0) await tx.manager.delete(deliveryAttempts, { id: In(ids) })
  return ids.length
}

/** Where an app's webhooks go, and the sealed secret that signs them. */
export interface WebhookTarget {
  readonly appId: number
  readonly apiKey: string
  readonly webhookUrl: string | null
  readonly webhookSecret: string | null
}

export async function listWebhookTargets(db: ReadOnly, appIds: readonly number[]): Promise<WebhookTarget[]> {
  return db.manager.query(
    `SELECT id AS appId, api_key AS apiKey, webhook_url AS webhookUrl, webhook_secret AS webhookSecret
     FROM apps WHERE id IN (?)`,
    [appIds],
  )
}

/** What was told about a transaction, in the order in which it was written. */
export async function listEventsOfTransaction(db: ReadOnly, transactionId: number): Promise<Event[]> {
  return db.manager.find(events, { where: { transactionId }, order: { id: 'ASC' } })
}
