import { byId } from '#db/by-id.ts'
import { bigint, exact, flag, id, int, json, realTime, words } from '#db/columns.ts'
import { table, type Row } from '#db/table.ts'
import { insertedNew } from '#db/database-error.ts'
import { following, where, type PageRequest } from '#db/conditions.ts'
import type { Queries } from '#db/queries.ts'
import type { Tx } from '#commands/transaction.ts'
import { found } from '#shared/errors.ts'
import type { Locale } from '#shared/locale.ts'

export const customers = table('customers', {
  id: id(),
  appId: bigint('app_id'),
  name: words('name', 191),
  email: exact('email', 254),
  merchantCustomerId: exact('merchant_customer_id', 191).nullable(),
  ccEmails: json<string[]>('cc_emails'),
  bccEmails: json<string[]>('bcc_emails'),
  locale: exact('locale', 8).as<Locale>(),
  /** The `sub` of the end user whose client created it; null for all others (R11). */
  endUser: exact('end_user', 191).nullable(),
  /** From 1: the unique key over end user and slot limits the number of customers. */
  endUserSlot: int('end_user_slot').nullable(),
  /** Whether the end user's token had verified the address; null for customers of no end user, and for those made before this was kept. */
  emailVerified: flag('email_verified').nullable(),
  createdAt: realTime('created_at'),
  updatedAt: realTime('updated_at'),
})
export type Customer = Row<typeof customers>

/** The columns that events contain. */
export const namedCustomers = customers.only('id', 'merchantCustomerId')
export type NamedCustomer = Pick<Customer, 'id' | 'merchantCustomerId'>

export type NewCustomer = Omit<Customer, 'id' | 'endUser' | 'endUserSlot' | 'emailVerified'>

/** Inserts a customer that belongs to no end user. */
export async function insertCustomer(tx: Tx, row: NewCustomer): Promise<number> {
  return tx.insert(customers, { ...row, endUser: null, endUserSlot: null, emailVerified: null })
}

/** Inserts an end user's customer into one of its slots; null if another request took the slot. */
export async function insertOwnCustomer(
  tx: Tx,
  row: NewCustomer & Pick<Customer, 'emailVerified'>,
  endUser: string,
  endUserSlot: number,
): Promise<Customer | null> {
  const insert = tx.insert(customers, { ...row, endUser, endUserSlot })
  if (!(await insertedNew('customers_app_end_user', insert))) return null
  return tx.one(customers, 'WHERE app_id = ? AND end_user = ? AND end_user_slot = ?', [row.appId, endUser, endUserSlot])
}

/** The slots that an end user has used. */
export async function listOwnSlots(db: Queries, appId: number, endUser: string): Promise<Set<number | null>> {
  const own = await db.all(customers, 'WHERE app_id = ? AND end_user = ?', [appId, endUser])
  return new Set(own.map(({ endUserSlot }) => endUserSlot))
}

export async function findCustomer(db: Queries, appId: number, customerId: number): Promise<Customer | null> {
  return db.one(customers, 'WHERE id = ? AND app_id = ?', [customerId, appId])
}

/** The customer as it is now, locked until the commit: for a change that records what it was. Throws `not_found`. */
export async function lockCustomer(tx: Tx, appId: number, customerId: number): Promise<Customer> {
  return found(await tx.one(customers, 'WHERE id = ? AND app_id = ? FOR UPDATE', [customerId, appId]), 'customer')
}

export async function getCustomer(db: Queries, appId: number, customerId: number): Promise<Customer> {
  return found(await findCustomer(db, appId, customerId), 'customer')
}

/** The newest customer with this address that belongs to the end user or to no end user. */
export async function findCustomerFor(
  db: Queries,
  appId: number,
  endUser: string,
  email: string,
): Promise<Customer | null> {
  return db.one(
    customers,
    `WHERE app_id = ? AND email = ? AND (end_user = ? OR end_user IS NULL) ORDER BY created_at DESC, id DESC LIMIT 1`,
    [appId, email, endUser],
  )
}

export interface CustomerFilter extends PageRequest {
  readonly appId: number
  readonly merchantCustomerId: string | null
  readonly email: string | null
}

/** Customers of an app, newest first. */
export async function listCustomerRows(db: Queries, filter: CustomerFilter): Promise<Customer[]> {
  const { appId, merchantCustomerId, email } = filter
  const listed = where(
    ['app_id = ?', appId],
    merchantCustomerId === null ? null : ['merchant_customer_id = ?', merchantCustomerId],
    email === null ? null : ['email = ?', email],
    following(filter.after, ['created_at', 'id'], 'desc'),
  )
  return db.all(customers, `${indexOf(filter)} ${listed.sql} ORDER BY created_at DESC, id DESC LIMIT ?`, [
    ...listed.params,
    filter.limit,
  ])
}

/** Where there are few customers, servers would rather read them all and sort. */
function indexOf({ merchantCustomerId, email }: CustomerFilter): string {
  if (merchantCustomerId !== null) return 'FORCE INDEX (customers_app_merchant)'
  return `FORCE INDEX (${email === null ? 'customers_app_created' : 'customers_app_email'})`
}

export async function updateCustomerRow(
  tx: Tx,
  customerId: number,
  changes: Partial<Omit<Customer, 'id' | 'appId'>>,
): Promise<void> {
  await tx.update(customers, { id: customerId }, { ...changes, updatedAt: tx.now })
}

/** Customers by id, for presenting lists. */
export async function listCustomersByIds(db: Queries, customerIds: readonly number[]): Promise<Map<number, Customer>> {
  return byId(db, customers, customerIds)
}
