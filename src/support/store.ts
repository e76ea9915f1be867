import { bigint, id, realTime, text } from '#db/columns.ts'
import type { Param, Queries } from '#db/queries.ts'
import { shape, type Row } from '#db/table.ts'
import type { RealTime } from '#shared/time.ts'

/** The kinds of things that a search finds. */
export type FoundKind =
  'app' | 'end user' | 'customer' | 'plan' | 'price' | 'checkout' | 'transaction' | 'payment' | 'bank mail' | 'event'

const FOUND = shape({
  kind: text().as<FoundKind>(),
  id: id(),
  appId: bigint().nullable(),
  externalRef: text().nullable(),
  amount: bigint().nullable(),
  currency: text().nullable(),
  state: text().nullable(),
  /** When it was created or received, in app time or real time, as its table has it. */
  at: realTime().nullable(),
  /** `subscription.updated` of an event; null of any other kind. */
  eventType: text().nullable(),
})
/** One match. */
export type Found = Row<typeof FOUND>

/** For each kind, the columns and the table, which is called `x`. */
const SOURCES: Readonly<Record<FoundKind, string>> = {
  app: `'app' AS kind, x.id, x.id AS appId, NULL AS externalRef, NULL AS amount, NULL AS currency,
    CASE WHEN x.disabled_at IS NULL THEN 'enabled' ELSE 'disabled' END AS state, x.created_at AS at FROM apps x`,
  'end user': `'end user' AS kind, x.id, x.app_id AS appId, x.external_ref AS externalRef, NULL AS amount, NULL AS currency,
    NULL AS state, x.created_at AS at FROM end_users x`,
  customer: `'customer' AS kind, x.id, x.app_id AS appId, x.end_user AS externalRef, NULL AS amount, NULL AS currency,
    NULL AS state, x.created_at AS at FROM customers x`,
  plan: `'plan' AS kind, x.id, x.app_id AS appId, NULL AS externalRef, NULL AS amount, NULL AS currency, x.status AS state,
    x.created_at AS at FROM plans x`,
  price: `'price' AS kind, x.id, (SELECT l.app_id FROM plans l WHERE l.id = x.plan_id) AS appId, NULL AS externalRef, x.amount,
    x.currency, x.status AS state, x.created_at AS at FROM prices x`,
  checkout: `'checkout' AS kind, x.id, x.app_id AS appId, t.external_ref AS externalRef, t.amount, t.currency, t.status AS state,
    x.created_at AS at FROM checkout_sessions x LEFT JOIN transactions t ON t.id = x.transaction_id`,
  transaction: `'transaction' AS kind, x.id, x.app_id AS appId, x.external_ref AS externalRef, x.amount, x.currency,
    CONCAT_WS(' ', x.status, x.flag_reason) AS state, x.created_at AS at FROM transactions x`,
  payment: `'payment' AS kind, x.id, x.app_id AS appId, (SELECT e.external_ref FROM end_users e WHERE e.id = x.end_user_id) AS externalRef,
    x.amount, x.currency, x.provider AS state, x.received_at AS at FROM payments x`,
  'bank mail': `'bank mail' AS kind, x.id, x.app_id AS appId, (SELECT t.external_ref FROM transactions t WHERE t.id = x.transaction_id) AS externalRef,
    x.amount, 'VND' AS currency, COALESCE(x.reason, x.status) AS state, x.received_at AS at FROM bank_mails x`,
  event: `'event' AS kind, x.id, x.app_id AS appId, x.external_ref AS externalRef, NULL AS amount, NULL AS currency,
    x.delivery_status AS state, x.written_at AS at FROM events x`,
}

/** How many rows of a kind a search returns at most, the newest ones. */
export const MAX_PER_KIND = 20

/** One condition on the rows `x` of a kind. An index must serve it: these tables grow. */
interface Search {
  readonly kind: FoundKind
  readonly where: string
  readonly params: readonly Param[]
}

/** Each row once, whichever of the searches find it. `appId`: only rows of this app; null takes those of all apps and of none. */
async function findBy(db: Queries, appId: number | null, searches: readonly Search[]): Promise<Found[]> {
  const found = new Map<string, Found>()
  const ofApp = appId === null ? '' : 'HAVING appId = ?'
  const app = appId === null ? [] : [appId]
  for (const { kind, where, params } of searches) {
    const type = kind === 'event' ? 'x.event_type' : 'NULL'
    const sql = `SELECT ${type} AS eventType, ${SOURCES[kind]} WHERE ${where} ${ofApp} ORDER BY x.id DESC LIMIT ${MAX_PER_KIND}`
    for (const row of await db.all(FOUND, sql, [...params, ...app])) found.set(`${kind} ${row.id}`, row)
  }
  return [...found.values()]
}

/** The thing of this number. */
export async function findById(db: Queries, appId: number | null, kind: FoundKind, number: number): Promise<Found[]> {
  return findBy(db, appId, [{ kind, where: 'x.id = ?', params: [number] }])
}

export async function findTransactions(db: Queries, appId: number | null, ids: readonly number[]): Promise<Found[]> {
  return ids.length === 0 ? [] : findBy(db, appId, [{ kind: 'transaction', where: 'x.id IN (?)', params: [ids] }])
}

/** The end user of the subscription of this number, to which a reminder went, or the transaction that the receipt of this number is about. */
export async function findByMail(
  db: Queries,
  appId: number | null,
  mail: 'reminder' | 'receipt',
  number: number,
): Promise<Found[]> {
  const about = {
    reminder: { kind: 'end user', where: 'x.id = (SELECT s.end_user_id FROM subscriptions s WHERE s.id = ?)' },
    receipt: { kind: 'transaction', where: 'x.id = (SELECT r.transaction_id FROM receipts r WHERE r.id = ?)' },
  } as const
  return findBy(db, appId, [{ ...about[mail], params: [number] }])
}

/** What the token of a checkout's or a renewal's link leads to. */
export async function findByToken(db: Queries, appId: number | null, token: string): Promise<Found[]> {
  return findBy(db, appId, [
    { kind: 'checkout', where: 'x.token = ?', params: [token] },
    {
      kind: 'end user',
      where: 'x.id = (SELECT s.end_user_id FROM subscriptions s WHERE s.renewal_token = ?)',
      params: [token],
    },
  ])
}

/** What a text is searched with. `apps`, `providers` and `banks` are complete lists, for indexes that begin with these columns. */
export interface TextScope {
  readonly apps: readonly number[]
  readonly providers: readonly string[]
  readonly banks: readonly string[]
  /** Customers of this name. */
  readonly named: readonly number[]
  /** Transfer codes that the text has. */
  readonly codes: readonly string[]
}

/**
 * What a text names: an app's key, an end user, a customer's e-mail or the seller's id of it, a transfer code, a reference of a bank or
 * a provider, a provider's event.
 */
export async function findByText(
  db: Queries,
  appId: number | null,
  given: string,
  { apps, providers, banks, named, codes }: TextScope,
): Promise<Found[]> {
  // A reference is typed from a receipt in any case, and in groups.
  const written = [...new Set([given, given.replaceAll(/\s/g, '').toUpperCase()])]
  const references = written.flatMap((one) => [one, ...banks.map((bank) => `${bank} ${one}`)])
  // A list in SQL cannot be empty.
  const appIds = [0, ...apps]
  return findBy(db, appId, [
    { kind: 'app', where: 'x.api_key = ?', params: [given] },
    { kind: 'end user', where: 'x.app_id IN (?) AND x.external_ref = ?', params: [appIds, given] },
    // The index compares byte for byte, so that all addresses of the app are read from it.
    ...(given.includes('@')
      ? [{ kind: 'customer', where: 'x.app_id IN (?) AND LOWER(x.email) = LOWER(?)', params: [appIds, given] } as const]
      : []),
    { kind: 'customer', where: 'x.app_id IN (?) AND x.merchant_customer_id = ?', params: [appIds, given] },
    ...(named.length === 0 ? [] : [{ kind: 'customer', where: 'x.id IN (?)', params: [named] } as const]),
    { kind: 'transaction', where: 'x.transfer_code IN (?)', params: [codes] },
    {
      kind: 'transaction',
      where: `x.id IN (SELECT s.transaction_id FROM provider_sessions s WHERE s.provider IN (?) AND s.reference = ?)`,
      params: [providers, given],
    },
    {
      kind: 'transaction',
      where: `x.id IN (SELECT e.transaction_id FROM provider_events e WHERE e.provider IN (?) AND e.event_id = ?)`,
      params: [providers, given],
    },
    { kind: 'payment', where: 'x.provider IN (?) AND x.reference IN (?)', params: [providers, references] },
    { kind: 'payment', where: 'x.charge_reference IN (?)', params: [written] },
    { kind: 'payment', where: 'x.id IN (SELECT r.payment_id FROM refunds r WHERE r.reference = ?)', params: [given] },
    { kind: 'bank mail', where: 'x.bank_reference IN (?)', params: [written] },
    { kind: 'bank mail', where: 'x.message_id = ?', params: [given] },
  ])
}

/** The transactions of these transfer codes. */
export async function findByCodes(db: Queries, appId: number | null, codes: readonly string[]): Promise<Found[]> {
  return codes.length === 0
    ? []
    : findBy(db, appId, [{ kind: 'transaction', where: 'x.transfer_code IN (?)', params: [codes] }])
}

/** The money that arrived in these bank accounts in this time. */
export async function findByAccount(
  db: Queries,
  appId: number | null,
  accounts: readonly number[],
  { from, until }: Span,
): Promise<Found[]> {
  const received = 'x.received_at >= ? AND x.received_at < ? AND x.bank_account_id IN (?)'
  const kinds = ['payment', 'bank mail'] as const
  return findBy(
    db,
    appId,
    kinds.map((kind) => ({ kind, where: received, params: [from, until, accounts] })),
  )
}

/** From `from` on, before `until`. */
export interface Span {
  readonly from: RealTime
  readonly until: RealTime
}

/** Payments and bank mails of one of these amounts that arrived in this time, and transactions of one of them that were opened on this day. */
export async function findByAmount(
  db: Queries,
  appId: number | null,
  amounts: readonly number[],
  appIds: readonly number[],
  { from, until }: Span,
  day: Span,
): Promise<Found[]> {
  const received = 'x.received_at >= ? AND x.received_at < ? AND x.amount IN (?)'
  const asked = 'x.app_id IN (?) AND x.created_at >= ? AND x.created_at < ? AND x.amount IN (?)'
  return findBy(db, appId, [
    { kind: 'payment', where: received, params: [from, until, amounts] },
    { kind: 'bank mail', where: received, params: [from, until, amounts] },
    { kind: 'transaction', where: asked, params: [[0, ...appIds], day.from, day.until, amounts] },
  ])
}

/** The end users of a customer: those whose subscriptions it is attached to, and those of its open and paid transactions. */
export async function listEndUsersOfCustomer(db: Queries, appId: number, customerId: number): Promise<string[]> {
  const rows = await db.all(
    shape({ externalRef: text() }),
    `SELECT external_ref AS externalRef FROM subscriptions WHERE app_id = ? AND customer_id = ?
     UNION SELECT external_ref FROM transactions WHERE app_id = ? AND customer_id = ? AND status <> 'void'
     LIMIT ${MAX_PER_KIND}`,
    [appId, customerId, appId, customerId],
  )
  return rows.map(({ externalRef }) => externalRef)
}

/** The names of an app's customers, the newest first. */
export async function listCustomerNames(
  db: Queries,
  appId: number,
  limit: number,
): Promise<{ readonly id: number; readonly name: string }[]> {
  return db.all(
    shape({ id: id(), name: text() }),
    'SELECT id, name FROM customers WHERE app_id = ? ORDER BY created_at DESC, id DESC LIMIT ?',
    [appId, limit],
  )
}

const UNALLOCATED = shape({ paymentId: id(), amount: bigint(), currency: text() })
/** The part of a payment that is booked for nothing. */
export type UnallocatedRow = Row<typeof UNALLOCATED>

/** Money of an end user that is booked for nothing and waits, the oldest payment first. */
export async function listUnallocated(db: Queries, appId: number, externalRef: string): Promise<UnallocatedRow[]> {
  return db.all(
    UNALLOCATED,
    `SELECT p.id AS paymentId, p.amount_left AS amount, p.currency
     FROM end_users e JOIN payments p ON p.end_user_id = e.id
     WHERE e.app_id = ? AND e.external_ref = ? AND p.amount_left > 0 AND p.closed_at IS NULL
     ORDER BY p.id LIMIT ${MAX_PER_KIND}`,
    [appId, externalRef],
  )
}

/** How many of an end user's events are pending or failed, and the newest failed one. */
export async function readUndelivered(
  db: Queries,
  appId: number,
  externalRef: string,
): Promise<{ readonly pending: number; readonly failed: number; readonly lastFailed: number | null }> {
  return db.single(
    shape({ pending: bigint(), failed: bigint(), lastFailed: bigint().nullable() }),
    `SELECT COALESCE(SUM(delivery_status = 'pending'), 0) AS pending, COALESCE(SUM(delivery_status = 'failed'), 0) AS failed,
       MAX(CASE WHEN delivery_status = 'failed' THEN id END) AS lastFailed
     FROM events WHERE app_id = ? AND external_ref = ?`,
    [appId, externalRef],
  )
}

const TOKENS: Partial<Record<FoundKind, string>> = {
  checkout: 'SELECT token FROM checkout_sessions WHERE id = ?',
  transaction: 'SELECT token FROM checkout_sessions WHERE transaction_id = ?',
}

/** The token of the checkout page's link; null for anything without such a page. */
export async function findCheckoutToken(db: Queries, { kind, id: number }: Found): Promise<string | null> {
  const sql = TOKENS[kind]
  return sql === undefined ? null : ((await db.one(shape({ token: text() }), sql, [number]))?.token ?? null)
}
