import { appTime, bigint, bytes, dueTime, exact, flag, id, int, realTime, text, words } from '#db/columns.ts'
import { following, idAmong, where, type PageRequest } from '#db/conditions.ts'
import { shape, table, type Row } from '#db/table.ts'
import type { Queries } from '#db/queries.ts'
import type { Tx } from '#commands/transaction.ts'
import { found } from '#shared/errors.ts'
import type { AppTime, RealTime } from '#shared/time.ts'
import type { EventType } from './events.ts'

/** The delivery of an event. `not_configured`: the app has no webhook address or no webhook secret. */
export type DeliveryStatus = 'pending' | 'delivered' | 'failed' | 'not_configured'

/** The event that an operator sends to try a receiver. */
export const TEST_EVENT = 'webhook.test'

/** The condition that an event `e` reports a change. A failed test loses nothing, so operators can ignore it. */
export const REPORTS_CHANGE = `e.event_type <> '${TEST_EVENT}'`

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
  nextAttemptAt: dueTime('next_attempt_at').nullable(),
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

type GivenColumns = 'appId' | 'eventType' | 'externalRef' | 'transactionId' | 'body' | 'createdAt' | 'writtenAt'

export interface NewEvent extends Pick<Event, GivenColumns> {
  readonly deliveryStatus: 'pending' | 'not_configured'
  /** How many automatic attempts may follow the first. */
  readonly retries: number
}

/** Writes an event; returns its id. A pending event is due at once. */
export async function insertEvent(tx: Tx, event: NewEvent): Promise<number> {
  return tx.insert(events, rowOf(event))
}

/** Writes several events. */
export async function insertEvents(tx: Tx, news: readonly NewEvent[]): Promise<void> {
  await tx.insertAll(events, news.map(rowOf))
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
    // Columns that a claim changes have a value from the start: InnoDB moves a row that grows, which was most of the cost of a claim.
    leaseUntil: event.deliveryStatus === 'pending' ? event.writtenAt : null,
    begun: false,
    deliveredAt: null,
    lastError: null,
  }
}

/** Throws `not_found`. */
export async function getEvent(db: Queries, eventId: number): Promise<Event> {
  return found(await db.one(events, 'WHERE id = ?', [eventId]), 'event')
}

/** As `getEvent`; throws `not_found` for an event of another app, too. */
export async function getEventOfApp(db: Queries, appId: number, eventId: number): Promise<Event> {
  return found(await db.one(events, 'WHERE id = ? AND app_id = ?', [eventId, appId]), 'event')
}

export interface EventFilter extends PageRequest {
  readonly appId: number
  readonly status: DeliveryStatus | null
  readonly eventType: EventType | null
  readonly externalRef: string | null
  /** Created then or later, in the app's own time. */
  readonly since: AppTime | null
  readonly order: 'asc' | 'desc'
}

/** Events of an app, by the time when they were created. */
export async function listEventRows(db: Queries, filter: EventFilter): Promise<Event[]> {
  const { appId, status, eventType, externalRef, since, order, after } = filter
  const listed = where(
    ['app_id = ?', appId],
    status === null ? null : ['delivery_status = ?', status],
    eventType === null ? null : ['event_type = ?', eventType],
    externalRef === null ? null : ['external_ref = ?', externalRef],
    since && ['created_at >= ?', since],
    following(after, ['created_at', 'id'], order),
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

const WEBHOOK_TARGET = shape({
  appId: bigint(),
  apiKey: text(),
  webhookUrl: text().nullable(),
  webhookSecret: text().nullable(),
})
/** Where an app's webhooks go, and the sealed secret that signs them. */
export type WebhookTarget = Row<typeof WEBHOOK_TARGET>

export async function listWebhookTargets(db: Queries, appIds: readonly number[]): Promise<WebhookTarget[]> {
  return db.all(
    WEBHOOK_TARGET,
    `SELECT id AS appId, api_key AS apiKey, webhook_url AS webhookUrl, webhook_secret AS webhookSecret
     FROM apps WHERE id IN (?)`,
    [appIds],
  )
}

/** The events about a transaction, in writing order. */
export async function listEventsOfTransaction(db: Queries, transactionId: number): Promise<Event[]> {
  return db.all(events, 'WHERE transaction_id = ? ORDER BY id', [transactionId])
}
