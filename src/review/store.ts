import { bigint, realTime, text } from '#db/columns.ts'
import { where } from '#db/conditions.ts'
import type { Param, Queries } from '#db/queries.ts'
import { shape, type Row } from '#db/table.ts'
import {
  columnsOf,
  selectRefusedReminders,
  selectUnconfirmedReceipts,
  selectUnconfirmedReminders,
} from '#mails/lists/store.ts'
import { addMs, HOUR_MS, type RealTime } from '#shared/time.ts'
import { REPORTS_CHANGE } from '#webhooks/store.ts'

export const REVIEW_KINDS = [
  'flagged_payment',
  'unapplied_payment',
  'unmatched_bank_mail',
  'unreadable_bank_mail',
  'unconfirmed_mail',
  'failed_webhook',
  'paused_account',
  'refused_address',
] as const
export type ReviewKind = (typeof REVIEW_KINDS)[number]

const WAITING = shape({
  kind: text().as<ReviewKind>(),
  id: bigint(),
  appId: bigint().nullable(),
  since: realTime(),
  /** In the smallest unit; null where no money waits, or nobody knows how much. */
  amount: bigint().nullable(),
  currency: text().nullable(),
  /** Whom or what it is about. */
  subject: text().nullable(),
  /** Why it waits, as its table says. */
  reason: text().nullable(),
  /** Of mails to end users: `reminder` or `receipt`. */
  mail: text().nullable(),
})
/** A case that waits for an operator. */
export type WaitingRow = Row<typeof WAITING>

/** An account whose pause ended this long ago is forgotten, even if it has not answered since. */
const PAUSE_FORGOTTEN_MS = HOUR_MS

interface Part {
  readonly kinds: readonly ReviewKind[]
  readonly sql: string
  readonly params: readonly Param[]
}

/** The columns' names, which a union takes from its first part. */
const NAMES = `
  SELECT NULL AS kind, NULL AS id, NULL AS appId, NULL AS since, NULL AS amount, NULL AS currency, NULL AS subject,
    NULL AS reason, NULL AS mail FROM DUAL WHERE FALSE`

/** The flag's time is the app's own, which a test clock moves; that of the history is real. */
const FLAGGED = `
  SELECT 'flagged_payment', t.id, t.app_id,
    COALESCE((SELECT MAX(c.at) FROM transaction_changes c WHERE c.transaction_id = t.id AND c.kind = 'flagged'),
      t.flagged_at, t.created_at),
    t.amount_left, t.currency, t.external_ref, t.flag_reason, NULL
  FROM transactions t WHERE t.flag_reason IS NOT NULL`

/** Money that a waiting mail reports is the mail's case. */
const UNAPPLIED = `
  SELECT 'unapplied_payment', p.id, p.app_id, p.received_at, p.amount_left, p.currency,
    COALESCE((SELECT e.external_ref FROM end_users e WHERE e.id = p.end_user_id), p.reference), p.provider, NULL
  FROM payments p WHERE p.closed_at IS NULL AND (p.amount_left > 0 OR p.amount_left IS NULL)
    AND NOT EXISTS (SELECT 1 FROM bank_mails m WHERE m.payment_id = p.id AND m.review IS NOT NULL)`

/** If several mails report one payment, only the first is listed. */
const BANK_MAILS = `
  SELECT IF(m.review = 'credit', 'unmatched_bank_mail', 'unreadable_bank_mail'), m.id, COALESCE(m.app_id, p.app_id), m.received_at,
    IF(m.review = 'credit', m.amount, NULL), IF(m.review = 'credit', 'VND', NULL),
    m.bank, m.review, NULL
  FROM bank_mails m LEFT JOIN payments p ON p.id = m.payment_id
  WHERE m.review IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM bank_mails o WHERE o.payment_id = m.payment_id AND o.review IS NOT NULL AND o.id < m.id)`

const UNCONFIRMED_REMINDERS = `'unconfirmed_mail', r.id, r.app_id, r.handed_over_at, NULL, NULL, s.external_ref, r.last_error, 'reminder'`

const UNCONFIRMED_RECEIPTS = `'unconfirmed_mail', r.id, r.app_id, r.created_at, NULL, NULL, t.external_ref, r.last_error, 'receipt'`

/** Without an address or a secret nothing can be delivered again, and what a disabled app does not take harms nobody. */
const FAILED_WEBHOOKS = `
  SELECT STRAIGHT_JOIN 'failed_webhook', e.id, e.app_id, e.written_at, NULL, NULL, COALESCE(e.external_ref, e.event_type), e.last_error, NULL
  FROM apps a JOIN events e FORCE INDEX (events_app_due) ON e.app_id = a.id AND e.delivery_status = 'failed'
  WHERE a.disabled_at IS NULL AND a.webhook_url IS NOT NULL AND a.webhook_secret IS NOT NULL AND ${REPORTS_CHANGE}`

const PAUSED_ACCOUNTS = `
  SELECT 'paused_account', p.provider_account_id, p.app_id, p.since, NULL, NULL, p.provider, p.reason, NULL
  FROM provider_pauses p WHERE p.paused_until > ?`

/** The mails of one period to one address are one case; only the first is listed. */
const REFUSED_ADDRESSES = `'refused_address', MIN(r.id), r.app_id, MIN(r.claimed_at), NULL, NULL, r.refused_to, MIN(r.last_error), NULL`

/** At `now`, by the database's clock. */
function partsAt(now: RealTime): Part[] {
  const refused = columnsOf(REFUSED_ADDRESSES, selectRefusedReminders(now))
  return [
    { kinds: ['flagged_payment'], sql: FLAGGED, params: [] },
    { kinds: ['unapplied_payment'], sql: UNAPPLIED, params: [] },
    { kinds: ['unmatched_bank_mail', 'unreadable_bank_mail'], sql: BANK_MAILS, params: [] },
    { kinds: ['unconfirmed_mail'], ...columnsOf(UNCONFIRMED_REMINDERS, selectUnconfirmedReminders(now)) },
    { kinds: ['unconfirmed_mail'], ...columnsOf(UNCONFIRMED_RECEIPTS, selectUnconfirmedReceipts(now)) },
    { kinds: ['failed_webhook'], sql: FAILED_WEBHOOKS, params: [] },
    { kinds: ['paused_account'], sql: PAUSED_ACCOUNTS, params: [addMs(now, -PAUSE_FORGOTTEN_MS)] },
    { kinds: ['refused_address'], ...refused, sql: `${refused.sql} GROUP BY r.app_id, r.refused_to` },
  ]
}

/** The queue of these kinds as a statement: only their tables are read. */
function queueAt(now: RealTime, asked: readonly ReviewKind[]): Pick<Part, 'sql' | 'params'> {
  const parts = partsAt(now).filter(({ kinds }) => kinds.some((kind) => asked.includes(kind)))
  return {
    sql: [NAMES, ...parts.map(({ sql }) => sql)].join(' UNION ALL '),
    params: parts.flatMap(({ params }) => params),
  }
}

export interface WaitingFilter {
  /** Null for those of all apps and of none. */
  readonly appId: number | null
  readonly kinds?: readonly ReviewKind[]
  /** Apps whose cases are left out. */
  readonly exceptApps?: readonly number[]
  /** Bank mails that are left out if no app is known. */
  readonly exceptMails?: readonly number[]
  readonly limit: number
}

const IS_MAIL_OF_NO_APP = `q.kind IN ('unmatched_bank_mail', 'unreadable_bank_mail') AND q.appId IS NULL`

/** The oldest cases first; of the same instant, reminders before receipts, whose ids say nothing about each other. */
export async function listWaiting(
  db: Queries,
  now: RealTime,
  { appId, kinds = REVIEW_KINDS, exceptApps = [], exceptMails = [], limit }: WaitingFilter,
): Promise<WaitingRow[]> {
  const queue = queueAt(now, kinds)
  const listed = where(
    ['q.kind IN (?)', kinds],
    appId === null ? null : ['q.appId = ?', appId],
    exceptApps.length === 0 ? null : ['(q.appId IS NULL OR q.appId NOT IN (?))', exceptApps],
    exceptMails.length === 0 ? null : [`NOT (${IS_MAIL_OF_NO_APP} AND q.id IN (?))`, exceptMails],
  )
  const ordered = `${listed.sql} ORDER BY q.since, q.kind, q.mail DESC, q.id LIMIT ?`
  return db.all(WAITING, `SELECT * FROM (${queue.sql}) q ${ordered}`, [...queue.params, ...listed.params, limit])
}

/**
 * The external_ref of the end user in a case, or the address that was refused; null if the case names nobody. The case of a mail is that of
 * its reminder or receipt.
 */
export async function findPersonOf(
  db: Queries,
  kind: ReviewKind | 'reminder' | 'receipt',
  id: number,
): Promise<string | null> {
  const sql = PERSONS[kind]
  if (sql === undefined) return null
  const found = await db.one(shape({ ref: text().nullable() }), sql, [id])
  return found?.ref ?? null
}

const PERSONS: Partial<Record<ReviewKind | 'reminder' | 'receipt', string>> = {
  flagged_payment: 'SELECT external_ref AS ref FROM transactions WHERE id = ?',
  unapplied_payment:
    'SELECT e.external_ref AS ref FROM payments p JOIN end_users e ON e.id = p.end_user_id WHERE p.id = ?',
  reminder:
    'SELECT s.external_ref AS ref FROM reminders r JOIN subscriptions s ON s.id = r.subscription_id WHERE r.id = ?',
  receipt: 'SELECT t.external_ref AS ref FROM receipts r JOIN transactions t ON t.id = r.transaction_id WHERE r.id = ?',
  failed_webhook: 'SELECT external_ref AS ref FROM events WHERE id = ?',
  refused_address: 'SELECT refused_to AS ref FROM reminders WHERE id = ?',
}

const COUNT = shape({ kind: text().as<ReviewKind>(), cases: bigint(), oldest: realTime() })

/** How many cases of each kind wait, and since when the oldest does. */
export async function countWaiting(db: Queries, now: RealTime): Promise<Row<typeof COUNT>[]> {
  const queue = queueAt(now, REVIEW_KINDS)
  return db.all(
    COUNT,
    `SELECT q.kind, COUNT(*) AS cases, MIN(q.since) AS oldest FROM (${queue.sql}) q GROUP BY q.kind ORDER BY q.kind`,
    [...queue.params],
  )
}
