import { EntitySchema, In, IsNull } from 'typeorm'
import { bigint, exact, id, instant, int, json, nullable, words } from '#db/columns.ts'
import { insertedId, insertedNew } from '#db/transaction.ts'
import type { ReadOnly, Tx } from '#db/transaction.ts'
import { notFound } from '#shared/errors.ts'

export interface Customer {
  id: number
  appId: number
  name: string
  email: string
  merchantCustomerId: string | null
  ccEmails: string[]
  bccEmails: string[]
  locale: 'en' | 'vi'
  /** The end user whose client made it, by the `sub` of its token; null for all others (contract 7, Callers). */
  endUser: string | null
  /** Which of the end user's customers it is, from 1: the unique key holds their number down. */
  endUserSlot: number | null
  createdAt: Date
  updatedAt: Date
}

export const customers = new EntitySchema<Customer>({
  name: 'customers',
  columns: {
    id,
    appId: bigint('app_id'),
    name: words('name', 191),
    email: exact('email', 254),
    merchantCustomerId: nullable(exact('merchant_customer_id', 191)),
    ccEmails: json('cc_emails'),
    bccEmails: json('bcc_emails'),
    locale: exact('locale', 8),
    endUser: nullable(exact('end_user', 191)),
    endUserSlot: nullable(int('end_user_slot')),
    createdAt: instant('created_at'),
    updatedAt: instant('updated_at'),
  },
})

export type NewCustomer = Omit<Customer, 'id' | 'endUser' | 'endUserSlot'>

/** Writes a customer that belongs to no end user. */
export async function insertCustomer(tx: Tx, row: NewCustomer): Promise<number> {
  const result = await tx.manager.insert(customers, row)
  return insertedId(result)
}

/** Writes an end user's customer into one of its slots; null where another request took the slot. */
export async function insertOwnCustomer(
  tx: Tx,
  row: NewCustomer,
  endUser: string,
  endUserSlot: number,
): Promise<Customer | null> {
  const insert = tx.manager.insert(customers, { ...row, endUser, endUserSlot })
  if (!(await insertedNew('customers_app_end_user', insert))) return null
  return tx.manager.findOneByOrFail(customers, { appId: row.appId, endUser, endUserSlot })
}

/** The slots of an end user that hold a customer. */
export async function listOwnSlots(db: ReadOnly, appId: number, endUser: string): Promise<Set<number | null>> {
  const own = await db.manager.find(customers, { where: { appId, endUser } })
  return new Set(own.map(({ endUserSlot }) => endUserSlot))
}

export async function findCustomer(db: ReadOnly, appId: number, customerId: number): Promise<Customer | null> {
  return db.manager.findOneBy(customers, { id: customerId, appId })
}

export async function getCustomer(db: ReadOnly, appId: number, customerId: number): Promise<Customer> {
  const customer = await findCustomer(db, appId, customerId)
  if (!customer) throw notFound('customer')
  return customer
}

/** The newest customer of this address that belongs to the end user or to nobody. */
export async function findCustomerFor(
  db: ReadOnly,
  appId: number,
  endUser: string,
  email: string,
): Promise<Customer | null> {
  return db.manager.findOne(customers, {
    where: [
      { appId, email, endUser },
      { appId, email, endUser: IsNull() },
    ],
    order: { createdAt: 'DESC', id: 'DESC' },
  })
}

export interface CustomerFilter {
  readonly appId: number
  readonly merchantCustomerId: string | null
  readonly email: string | null
  readonly below: { readonly createdAt: Date; readonly id: number } | null
  readonly limit: number
}

/** Customers of an app, newest first. */
export async function listCustomerRows(db: ReadOnly, filter: CustomerFilter): Promise<Customer[]> {
  const { appId, merchantCustomerId, email, below } = filter
  const query = db.manager
    .createQueryBuilder(customers, 'c')
    .where('c.appId = :appId', { appId })
    .orderBy('c.createdAt', 'DESC')
    .addOrderBy('c.id', 'DESC')
  if (merchantCustomerId !== null) query.andWhere('c.merchantCustomerId = :merchantCustomerId', { merchantCustomerId })
  if (email !== null) query.andWhere('c.email = :email', { email })
  if (below) {
    const position = { createdAt: below.createdAt, belowId: below.id }
    query.andWhere('(c.createdAt < :createdAt OR (c.createdAt = :createdAt AND c.id < :belowId))', position)
  }
  return query.limit(filter.limit).getMany()
}

export async function updateCustomerRow(
  tx: Tx,
  customerId: number,
  changes: Partial<Omit<Customer, 'id' | 'appId'>>,
): Promise<void> {
  await tx.manager.update(customers, { id: customerId }, { ...changes, updatedAt: tx.now })
}

/** Customers by id, for presenting lists. */
export async function listCustomersByIds(db: ReadOnly, customerIds: readonly number[]): Promise<Map<number, Customer>> {
  if (customerIds.length === 0) return new Map()
  const found = await db.manager.find(customers, { where: { id: In([...new Set(customerIds)]) } })
  return new Map(found.map((customer) => [customer.id, customer]))
}
