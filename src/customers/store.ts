import { EntitySchema, In } from 'typeorm'
import { bigint, exact, id, instant, json, nullable, words } from '#db/columns.ts'
import { insertedId } from '#db/transaction.ts'
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
    createdAt: instant('created_at'),
    updatedAt: instant('updated_at'),
  },
})

export async function insertCustomer(tx: Tx, row: Omit<Customer, 'id'>): Promise<number> {
  const result = await tx.manager.insert(customers, row)
  return insertedId(result)
}

export async function findCustomer(db: ReadOnly, appId: number, customerId: number): Promise<Customer | null> {
  return db.manager.findOneBy(customers, { id: customerId, appId })
}

export async function getCustomer(db: ReadOnly, appId: number, customerId: number): Promise<Customer> {
  const customer = await findCustomer(db, appId, customerId)
  if (!customer) throw notFound('customer')
  return customer
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
