import { EntitySchema, MoreThan } from 'typeorm'
import { bigint, exact, flag, id, instant, int, nullable } from '#db/columns.ts'
import { rowReader } from '#db/row-reader.ts'
import { insertedId, insertedNew } from '#db/transaction.ts'
import type { ReadOnly, Tx } from '#db/transaction.ts'
import { notFound } from '#shared/errors.ts'
import type { IntervalUnit } from '#shared/interval.ts'

/** The row that is locked: one for each end user of an app, there before any subscription. */
export interface EndUser {
  id: number
  appId: number
  externalRef: string
  version: number
  createdAt: Date
}

export const endUsers = new EntitySchema<EndUser>({
  name: 'end_users',
  columns: {
    id,
    appId: bigint('app_id'),
    externalRef: exact('external_ref', 191),
    version: bigint('version'),
    createdAt: instant('created_at'),
  },
})

/** Times are the app's own, in whole seconds. `currentPeriodEnd` null means lifetime. */
export interface Subscription {
  id: number
  appId: number
  endUserId: number
  externalRef: string
  planId: number
  priceId: number
  customerId: number | null
  /** Stored by the expiry job; what counts is `effectiveStatus`. */
  status: 'active' | 'expired'
  periodStart: Date
  currentPeriodEnd: Date | null
  /** Day of the month that month and year steps aim at; null for lifetime. */
  anchorDay: number | null
  /** Whether the latest period is a trial; its end is then `currentPeriodEnd`. */
  inTrial: boolean
  /** Grows with every change. */
  revision: number
  renewalToken: string
  remindersStoppedAt: Date | null
  createdAt: Date
  updatedAt: Date
}

export const subscriptions = new EntitySchema<Subscription>({
  name: 'subscriptions',
  columns: {
    id,
    appId: bigint('app_id'),
    endUserId: bigint('end_user_id'),
    externalRef: exact('external_ref', 191),
    planId: bigint('plan_id'),
    priceId: bigint('price_id'),
    customerId: nullable(bigint('customer_id')),
    status: exact('status', 16),
    periodStart: instant('period_start'),
    currentPeriodEnd: nullable(instant('current_period_end')),
    anchorDay: nullable(int('anchor_day')),
    inTrial: flag('in_trial'),
    revision: bigint('revision'),
    renewalToken: exact('renewal_token', 64),
    remindersStoppedAt: nullable(instant('reminders_stopped_at')),
    createdAt: instant('created_at'),
    updatedAt: instant('updated_at'),
  },
})

/** A trial is granted at most once per end user and plan: the unique key decides (specification 3, rule 3). */
export interface TrialGrant {
  id: number
  appId: number
  endUserId: number
  planId: number
  transactionId: number | null
  grantedAt: Date
}

export const trialGrants = new EntitySchema<TrialGrant>({
  name: 'trial_grants',
  columns: {
    id,
    appId: bigint('app_id'),
    endUserId: bigint('end_user_id'),
    planId: bigint('plan_id'),
    transactionId: nullable(bigint('transaction_id')),
    grantedAt: instant('granted_at'),
  },
})

/** One line of the ledger of periods: the only reason why a period end may move. */
export interface PaymentApplication {
  id: number
  appId: number
  subscriptionId: number
  revision: number
  /** Null for a free trial and for an import. */
  transactionId: number | null
  kind: 'started' | 'extended' | 'restarted' | 'imported'
  planId: number
  priceId: number
  intervalUnit: IntervalUnit
  intervalCount: number
  isTrial: boolean
  endBefore: Date | null
  anchorBefore: number | null
  periodStart: Date
  endAfter: Date | null
  anchorAfter: number | null
  appliedAt: Date
}

export const paymentApplications = new EntitySchema<PaymentApplication>({
  name: 'payment_applications',
  columns: {
    id,
    appId: bigint('app_id'),
    subscriptionId: bigint('subscription_id'),
    revision: bigint('revision'),
    transactionId: nullable(bigint('transaction_id')),
    kind: exact('kind', 16),
    planId: bigint('plan_id'),
    priceId: bigint('price_id'),
    intervalUnit: exact('interval_unit', 16),
    intervalCount: int('interval_count'),
    isTrial: flag('is_trial'),
    endBefore: nullable(instant('end_before')),
    anchorBefore: nullable(int('anchor_before')),
    periodStart: instant('period_start'),
    endAfter: nullable(instant('end_after')),
    anchorAfter: nullable(int('anchor_after')),
    appliedAt: instant('applied_at'),
  },
})

/**
 * Locks the end user until the transaction ends, making the row where there is none, and returns its id.
 * The update is a lock on one server and a conflict between the nodes of a cluster; a read with a lock is only the former.
 */
export async function lockEndUser(tx: Tx, appId: number, externalRef: string): Promise<number> {
  if (!(await bumpEndUser(tx, appId, externalRef))) {
    const row = { appId, externalRef, version: 1, createdAt: tx.now }
    if (!(await insertedNew('end_users_app_ref', tx.manager.insert(endUsers, row))))
      await bumpEndUser(tx, appId, externalRef)
  }
  const endUser = await tx.manager.findOneByOrFail(endUsers, { appId, externalRef })
  return endUser.id
}

/** As `lockEndUser`, for one who should be there: an unknown end user is not written down. */
export async function lockExistingEndUser(tx: Tx, appId: number, externalRef: string): Promise<void> {
  await bumpEndUser(tx, appId, externalRef)
}

async function bumpEndUser(tx: Tx, appId: number, externalRef: string): Promise<boolean> {
  const result = await tx.manager.increment(endUsers, { appId, externalRef }, 'version', 1)
  return (result.affected ?? 0) > 0
}

const subscriptionReader = rowReader(subscriptions)

export async function findSubscription(db: ReadOnly, appId: number, externalRef: string): Promise<Subscription | null> {
  const rows = await db.manager.query<Record<string, unknown>[]>(
    `SELECT ${subscriptionReader.columns} FROM subscriptions WHERE app_id = ? AND external_ref = ?`,
    [appId, externalRef],
  )
  return rows[0] ? subscriptionReader.read(rows[0]) : null
}

export async function findSubscriptionOfEndUser(db: ReadOnly, endUserId: number): Promise<Subscription | null> {
  return db.manager.findOneBy(subscriptions, { endUserId })
}

export async function getSubscription(db: ReadOnly, appId: number, externalRef: string): Promise<Subscription> {
  const subscription = await findSubscription(db, appId, externalRef)
  if (!subscription) throw notFound('subscription')
  return subscription
}

export async function findSubscriptionById(db: ReadOnly, subscriptionId: number): Promise<Subscription | null> {
  return db.manager.findOneBy(subscriptions, { id: subscriptionId })
}

export async function findSubscriptionByRenewalToken(db: ReadOnly, token: string): Promise<Subscription | null> {
  return db.manager.findOneBy(subscriptions, { renewalToken: token })
}

export async function insertSubscription(tx: Tx, row: Omit<Subscription, 'id'>): Promise<number> {
  const result = await tx.manager.insert(subscriptions, row)
  return insertedId(result)
}

/** Saves a change made from `fromRevision`; throws where somebody else changed it since, so that nothing is overwritten. */
export async function updateSubscription(
  tx: Tx,
  subscriptionId: number,
  fromRevision: number,
  changes: Partial<Omit<Subscription, 'id' | 'appId' | 'endUserId' | 'externalRef'>>,
): Promise<void> {
  const result = await tx.manager.update(subscriptions, { id: subscriptionId, revision: fromRevision }, changes)
  if (result.affected !== 1) throw new Error(`subscription ${subscriptionId} is no longer at revision ${fromRevision}`)
}

/** Whether the trial is granted now; false where this end user had one on the plan before. */
export async function insertTrialGrant(tx: Tx, row: Omit<TrialGrant, 'id'>): Promise<boolean> {
  return insertedNew('trial_grants_end_user_plan', tx.manager.insert(trialGrants, row))
}

export async function hadTrial(db: ReadOnly, endUserId: number, planId: number): Promise<boolean> {
  return db.manager.existsBy(trialGrants, { endUserId, planId })
}

export async function insertApplication(tx: Tx, row: Omit<PaymentApplication, 'id'>): Promise<void> {
  await tx.manager.insert(paymentApplications, row)
}

/** Whether a payment (not a free trial) has been applied to the period that ended at `end`. */
export async function wasRenewedByPayment(db: ReadOnly, subscriptionId: number, end: Date): Promise<boolean> {
  const rows = await db.manager.find(paymentApplications, { where: { subscriptionId, endBefore: end } })
  return rows.some((row) => row.transactionId !== null)
}

export async function listApplications(db: ReadOnly, subscriptionId: number): Promise<PaymentApplication[]> {
  return db.manager.find(paymentApplications, { where: { subscriptionId }, order: { revision: 'ASC' } })
}

export async function findApplicationOfTransaction(
  db: ReadOnly,
  transactionId: number,
): Promise<PaymentApplication | null> {
  return db.manager.findOneBy(paymentApplications, { transactionId })
}

/** Subscriptions by id, for walking through all of them; `appId` null takes those of all apps. */
export async function listSubscriptionsAfter(
  db: ReadOnly,
  appId: number | null,
  afterId: number,
  limit: number,
): Promise<Subscription[]> {
  const where = { id: MoreThan(afterId), ...(appId === null ? {} : { appId }) }
  return db.manager.find(subscriptions, { where, order: { id: 'ASC' }, take: limit })
}

/** An app's subscriptions, those that end first on top, lifetime ones last. `now` and `endsBy` are in the app's own time. */
export async function listSubscriptionsByEnd(
  db: ReadOnly,
  appId: number,
  filter: { readonly status: 'active' | 'expired' | null; readonly now: Date; readonly endsBy: Date | null },
): Promise<Subscription[]> {
  const query = db.manager
    .createQueryBuilder(subscriptions, 's')
    .where('s.appId = :appId', { appId })
    .orderBy('s.currentPeriodEnd IS NULL', 'ASC')
    .addOrderBy('s.currentPeriodEnd', 'ASC')
    .addOrderBy('s.id', 'ASC')
  if (filter.status === 'active')
    query.andWhere('(s.currentPeriodEnd IS NULL OR s.currentPeriodEnd > :now)', { now: filter.now })
  if (filter.status === 'expired') query.andWhere('s.currentPeriodEnd <= :now', { now: filter.now })
  if (filter.endsBy) query.andWhere('s.currentPeriodEnd <= :endsBy', { endsBy: filter.endsBy })
  return query.getMany()
}
