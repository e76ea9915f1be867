import { EntitySchema } from 'typeorm'
import { bigint, exact, id, instant, nullable } from '#db/columns.ts'
import { insertedId } from '#db/transaction.ts'
import type { ReadOnly, Tx } from '#db/transaction.ts'

/** One checkout link. `expiresAt` is in the app's own time. */
export interface CheckoutSession {
  id: number
  appId: number
  endUserId: number
  /** 64 hex characters: whoever holds it may pay. */
  token: string
  /** Who opened it: the seller, or a renewal link. */
  origin: 'checkout' | 'renewal'
  /** The subscription that a renewal pays for. */
  subscriptionId: number | null
  /** Null where a free trial activated at once. */
  transactionId: number | null
  customerId: number | null
  /** Chosen by the seller up front; null lets the payer choose. */
  paymentMethod: string | null
  successUrl: string
  cancelUrl: string
  expiresAt: Date
  createdAt: Date
}

export const checkoutSessions = new EntitySchema<CheckoutSession>({
  name: 'checkout_sessions',
  columns: {
    id,
    appId: bigint('app_id'),
    endUserId: bigint('end_user_id'),
    token: exact('token', 64),
    origin: exact('origin', 16),
    subscriptionId: nullable(bigint('subscription_id')),
    transactionId: nullable(bigint('transaction_id')),
    customerId: nullable(bigint('customer_id')),
    paymentMethod: nullable(exact('payment_method', 32)),
    successUrl: exact('success_url', 2048),
    cancelUrl: exact('cancel_url', 2048),
    expiresAt: instant('expires_at'),
    createdAt: instant('created_at'),
  },
})

export async function insertCheckoutSession(tx: Tx, row: Omit<CheckoutSession, 'id'>): Promise<number> {
  const result = await tx.manager.insert(checkoutSessions, row)
  return insertedId(result)
}

export async function findCheckoutSession(db: ReadOnly, token: string): Promise<CheckoutSession | null> {
  return db.manager.findOneBy(checkoutSessions, { token })
}

export async function findSessionOfTransaction(db: ReadOnly, transactionId: number): Promise<CheckoutSession | null> {
  return db.manager.findOneBy(checkoutSessions, { transactionId })
}

/** The newest checkout that the subscription's renewal link opened; null where there is none. */
export async function findLatestRenewal(db: ReadOnly, subscriptionId: number): Promise<CheckoutSession | null> {
  return db.manager.findOne(checkoutSessions, {
    where: { subscriptionId, origin: 'renewal' },
    order: { createdAt: 'DESC', id: 'DESC' },
  })
}

/**
 * When fewer than `most` of the end user's checkouts will be open, that is pending and not expired at `now`, all in the app's own time;
 * null where fewer are open already.
 */
export async function findWhenPlaceIsFree(
  db: ReadOnly,
  endUserId: number,
  most: number,
  now: Date,
): Promise<Date | null> {
  // Reads what is open alone, last to expire first: the end user may have any number of checkouts that expired.
  const rows = await db.manager.query<{ expiresAt: Date }[]>(
    `SELECT STRAIGHT_JOIN s.expires_at AS expiresAt
     FROM checkout_sessions s FORCE INDEX (checkout_sessions_end_user_expires)
     JOIN transactions t FORCE INDEX (PRIMARY) ON t.id = s.transaction_id
     WHERE s.end_user_id = ? AND s.expires_at > ? AND t.status = 'pending'
     ORDER BY s.expires_at DESC LIMIT 1 OFFSET ?`,
    [endUserId, now, most - 1],
  )
  return rows[0]?.expiresAt ?? null
}
