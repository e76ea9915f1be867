import { appTime, bigint, exact, flag, id } from '#db/columns.ts'
import { shape, table, joinedRows, type Row } from '#db/table.ts'
import { onDuplicate, retryable } from '#db/database-error.ts'
import type { Queries } from '#db/queries.ts'
import { anyOf, SharedRead } from '#db/shared-read.ts'
import { payableApps } from '#apps/store.ts'
import { customers } from '#customers/store.ts'
import { offeredPlans, offeredPrices, plans, prices } from '#plans/store.ts'
import { appliedPromotions } from '#promotions/store.ts'
import { decidedSubscriptions } from '#subscriptions/store.ts'
import { payableTransactions } from '#transactions/store.ts'
import type { Tx } from '#commands/transaction.ts'
import type { AppTime } from '#shared/time.ts'

/** One checkout link. `expiresAt` is in the app's own time. */
export const checkoutSessions = table('checkout_sessions', {
  id: id(),
  appId: bigint('app_id'),
  endUserId: bigint('end_user_id'),
  /** 64 hex characters. Whoever has it can pay. */
  token: exact('token', 64),
  /** Who opened it: the seller, or a renewal link. */
  origin: exact('origin', 16).as<'checkout' | 'renewal'>(),
  /** The subscription that a renewal pays for. */
  subscriptionId: bigint('subscription_id').nullable(),
  /** Null if a free trial activated at once. */
  transactionId: bigint('transaction_id').nullable(),
  customerId: bigint('customer_id').nullable(),
  /** Chosen by the seller up front; null lets the payer choose. */
  paymentMethod: exact('payment_method', 32).nullable(),
  successUrl: exact('success_url', 2048),
  cancelUrl: exact('cancel_url', 2048),
  expiresAt: appTime('expires_at'),
  createdAt: appTime('created_at'),
})
export type CheckoutSession = Row<typeof checkoutSessions>

/** A price with its plan, the customer that the checkout names, and the subscription of its end user. */
const OFFER = joinedRows(
  `prices price JOIN plans plan ON plan.id = price.plan_id
   LEFT JOIN customers customer ON customer.id = ? AND customer.app_id = plan.app_id
   LEFT JOIN subscriptions current ON current.app_id = plan.app_id AND current.external_ref = ?`,
  { price: offeredPrices, plan: offeredPlans },
  { customer: customers.only('id', 'endUser'), current: decidedSubscriptions },
  {},
)

/** Null if the app has no such price. Call it under the end user's lock, so that the checkout is quoted on the `current` subscription. */
export async function findOffer(
  tx: Tx,
  appId: number,
  ids: { readonly priceId: number; readonly customerId: number | null; readonly externalRef: string },
): Promise<Row<typeof OFFER> | null> {
  const { priceId, customerId, externalRef } = ids
  return tx.one(OFFER, 'WHERE price.id = ? AND plan.app_id = ?', [customerId, externalRef, priceId, appId])
}

/** Whether a checkout with this token exists; waits for a transaction that is inserting one. */
export async function hasSession(tx: Tx, token: string): Promise<boolean> {
  const found = await tx.one(shape({ id: id() }), 'SELECT id FROM checkout_sessions WHERE token = ? FOR UPDATE', [
    token,
  ])
  return found !== null
}

/** On a cluster, the row of an earlier attempt may arrive from another node after `hasSession`: the next attempt finds it. */
export async function insertCheckoutSession(tx: Tx, row: Omit<CheckoutSession, 'id'>): Promise<number> {
  const opened = (): Error => retryable('the checkout was opened before')
  return onDuplicate('checkout_sessions_token', tx.insert(checkoutSessions, row), opened)
}

const pageSessions = checkoutSessions.only('token', 'origin', 'paymentMethod', 'successUrl', 'cancelUrl', 'expiresAt')
const pagePrices = prices.only(
  'id',
  'name',
  'amount',
  'currency',
  'intervalUnit',
  'intervalCount',
  'trialIntervalUnit',
  'trialIntervalCount',
)
const pagePlans = plans.only('id', 'code', 'name', 'description')
const shownCustomers = customers.only('id', 'email', 'locale')

const CHECKOUT = joinedRows(
  `checkout_sessions session
   JOIN transactions transaction ON transaction.id = session.transaction_id
   JOIN apps app ON app.id = session.app_id
   LEFT JOIN prices price ON price.id = transaction.price_id
   LEFT JOIN plans plan ON plan.id = price.plan_id
   LEFT JOIN subscriptions current ON current.end_user_id = transaction.end_user_id
   LEFT JOIN customers customer ON customer.app_id = app.id
     AND customer.id = COALESCE(transaction.customer_id, session.customer_id)
   LEFT JOIN promotions promotion ON promotion.app_id = app.id AND promotion.code = transaction.promotion_code`,
  { session: pageSessions, transaction: payableTransactions, app: payableApps },
  {
    price: pagePrices,
    plan: pagePlans,
    current: decidedSubscriptions,
    /** Sets the language of the page. */
    customer: shownCustomers,
    promotion: appliedPromotions,
  },
  {
    /** Whether a payment is being processed at its provider. */
    isProcessing: flag(`(transaction.status = 'pending' AND (
      SELECT COUNT(*) > 0 FROM provider_sessions opened WHERE opened.transaction_id = transaction.id AND opened.status = 'processing'))`),
    /** Whether the checkout has a use of its promotion; false once a newer checkout has taken it over. */
    hasPromotionUse: flag('(SELECT COUNT(*) > 0 FROM promotion_uses held WHERE held.transaction_id = transaction.id)'),
    /** The app's enabled methods, separated by commas. */
    enabledMethods: exact(
      `(SELECT COALESCE(GROUP_CONCAT(enabled.method), '') FROM payment_methods enabled
        WHERE enabled.app_id = app.id AND enabled.is_enabled = 1)`,
      0,
    ),
  },
)

export type CheckoutRows = Row<typeof CHECKOUT>

/** Checkouts by token, each with everything that its page shows. A checkout that a free trial activated has none. */
export const checkoutsByToken = new SharedRead<string, CheckoutRows>(
  (token) => token,
  async (db, tokens) => {
    const { sql, params } = anyOf(
      'session.token = ?',
      tokens.map((token) => [token]),
    )
    return new Map((await db.all(CHECKOUT, sql, params)).map((rows) => [rows.session.token, rows]))
  },
)

export async function findSessionOfTransaction(db: Queries, transactionId: number): Promise<CheckoutSession | null> {
  return db.one(checkoutSessions, 'WHERE transaction_id = ?', [transactionId])
}

/** The last checkout that the seller opened for the end user, by its expiry: its addresses lead to the seller's site. */
export async function findLastOfSeller(db: Queries, endUserId: number): Promise<CheckoutSession | null> {
  return db.one(checkoutSessions, `WHERE end_user_id = ? AND origin = 'checkout' ORDER BY expires_at DESC LIMIT 1`, [
    endUserId,
  ])
}

/** The newest checkout that the subscription's renewal link opened. */
export async function findLatestRenewal(db: Queries, subscriptionId: number): Promise<CheckoutSession | null> {
  return db.one(
    checkoutSessions,
    `WHERE subscription_id = ? AND origin = 'renewal' ORDER BY created_at DESC, id DESC LIMIT 1`,
    [subscriptionId],
  )
}

/**
 * When fewer than `max` of the end user's checkouts will be open, that is pending and not expired; null if fewer are open at `now`. Times
 * are the app's own.
 */
export async function findNextFreeSlot(
  db: Queries,
  endUserId: number,
  max: number,
  now: AppTime,
): Promise<AppTime | null> {
  // Reads only open checkouts, last to expire first: there may be any number of expired ones.
  const last = await db.one(
    shape({ expiresAt: appTime() }),
    `SELECT STRAIGHT_JOIN s.expires_at AS expiresAt
     FROM checkout_sessions s FORCE INDEX (checkout_sessions_end_user_expires)
     JOIN transactions t FORCE INDEX (PRIMARY) ON t.id = s.transaction_id
     WHERE s.end_user_id = ? AND s.expires_at > ? AND t.status = 'pending'
     ORDER BY s.expires_at DESC LIMIT 1 OFFSET ?`,
    [endUserId, now, max - 1],
  )
  return last?.expiresAt ?? null
}
