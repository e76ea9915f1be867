import { appTime, bigint, exact, flag, id, int, realTime } from '#db/columns.ts'
import { joinedRows, table, type Row, type Table } from '#db/table.ts'
import { insertedNew, retryable, unlessDuplicate } from '#db/database-error.ts'
import type { Queries } from '#db/queries.ts'
import { anyOf, rowsBy, SharedRead } from '#db/shared-read.ts'
import { namedCustomers, type NamedCustomer } from '#customers/store.ts'
import { plans, type NamedPlan } from '#plans/store.ts'
import type { Tx } from '#commands/transaction.ts'
import { found } from '#shared/errors.ts'
import type { IntervalUnit } from '#shared/interval.ts'
import type { AppTime } from '#shared/time.ts'
import { planChoiceAfter, type ChoiceLine, type PlanChoice, type Purpose } from './lifecycle.ts'

/** The row that serves as the lock: one per end user of an app, older than any subscription. */
export const endUsers = table('end_users', {
  id: id(),
  appId: bigint('app_id'),
  externalRef: exact('external_ref', 191),
  version: bigint('version'),
  createdAt: realTime('created_at'),
})

/** Times are the app's own, in whole seconds. `currentPeriodEnd` null means lifetime. */
export const subscriptions = table('subscriptions', {
  id: id(),
  appId: bigint('app_id'),
  endUserId: bigint('end_user_id'),
  externalRef: exact('external_ref', 191),
  planId: bigint('plan_id'),
  priceId: bigint('price_id'),
  customerId: bigint('customer_id').nullable(),
  /** Updated by the expiry job, for lists; `effectiveStatus` decides. */
  status: exact('status', 16).as<'active' | 'expired'>(),
  periodStart: appTime('period_start'),
  currentPeriodEnd: appTime('current_period_end').nullable(),
  /** Day of the month that month and year steps aim at; null for lifetime. */
  anchorDay: int('anchor_day').nullable(),
  /** Whether the latest period is a trial; its end is then `currentPeriodEnd`. */
  inTrial: flag('in_trial'),
  /** The promotion whose discount the renewals get; null without one (R357). */
  promotionCode: exact('promotion_code', 40).nullable(),
  /** Grows with every change. */
  revision: bigint('revision'),
  renewalToken: exact('renewal_token', 64),
  remindersStoppedAt: appTime('reminders_stopped_at').nullable(),
  createdAt: appTime('created_at'),
  updatedAt: appTime('updated_at'),
})
export type Subscription = Row<typeof subscriptions>

/** The columns that the decision about a payment and the renewals after it needs. */
export const decidedSubscriptions = subscriptions.only(
  'id',
  'planId',
  'priceId',
  'periodStart',
  'currentPeriodEnd',
  'anchorDay',
  'promotionCode',
)
export type DecidedSubscription = Row<typeof decidedSubscriptions>

/** A trial is granted at most once per end user and plan: the unique key decides (R80). */
export const trialGrants = table('trial_grants', {
  id: id(),
  appId: bigint('app_id'),
  endUserId: bigint('end_user_id'),
  planId: bigint('plan_id'),
  transactionId: bigint('transaction_id').nullable(),
  grantedAt: appTime('granted_at'),
})
export type TrialGrant = Row<typeof trialGrants>

/** A ledger line: the only reason why a period end, a plan or a price may change. */
export const ledgerLines = table('payment_applications', {
  id: id(),
  appId: bigint('app_id'),
  subscriptionId: bigint('subscription_id'),
  revision: bigint('revision'),
  /** Null for a free trial, and for lines that are not payments: an import, a plan switch, an operator's end. */
  transactionId: bigint('transaction_id').nullable(),
  kind: exact('kind', 16).as<ChoiceLine['kind']>(),
  planId: bigint('plan_id'),
  priceId: bigint('price_id'),
  intervalUnit: exact('interval_unit', 16).as<IntervalUnit>(),
  intervalCount: int('interval_count'),
  isTrial: flag('is_trial'),
  endBefore: appTime('end_before').nullable(),
  anchorBefore: int('anchor_before').nullable(),
  periodStart: appTime('period_start'),
  endAfter: appTime('end_after').nullable(),
  anchorAfter: int('anchor_after').nullable(),
  /** When it was paid, or decided. */
  paidAt: appTime('applied_at'),
  /** When it was opened; null on lines of the versions that did not keep it. */
  openedAt: appTime('opened_at').nullable(),
  /** An operator applied the payment although it had been superseded. */
  isAccepted: flag('is_accepted'),
})
export type LedgerLine = Row<typeof ledgerLines>

/**
 * Locks the end user until the transaction ends, adding the row if there is none, and returns its id.
 * The update is a lock on one server and a conflict between the nodes of a cluster; a locking read is only a lock.
 */
export async function lockEndUser(tx: Tx, appId: number, externalRef: string): Promise<number> {
  return (await tx.bump(endUsers, 'version', { appId, externalRef })) ?? addEndUser(tx, appId, externalRef)
}

async function addEndUser(tx: Tx, appId: number, externalRef: string): Promise<number> {
  const row = { appId, externalRef, version: 1, createdAt: tx.now }
  const added = await unlessDuplicate('end_users_app_ref', tx.insert(endUsers, row))
  const locked = added ?? (await tx.bump(endUsers, 'version', { appId, externalRef }))
  if (locked === null) throw new Error('the row of an end user that another transaction added cannot be locked')
  return locked
}

/** As `lockEndUser`, but adds no row for an unknown end user. */
export async function lockExistingEndUser(tx: Tx, appId: number, externalRef: string): Promise<void> {
  await tx.bump(endUsers, 'version', { appId, externalRef })
}

/** As `lockExistingEndUser`, by a row of the end user, in one statement. Returns false if there is no such row. */
export async function lockEndUserOf<R extends { readonly endUserId: number }>(
  tx: Tx,
  owned: Table<R>,
  rowId: number,
): Promise<boolean> {
  const locked = await tx.run(
    `UPDATE end_users SET version = version + 1 WHERE id = (SELECT end_user_id FROM ${owned.name} WHERE id = ?)`,
    [rowId],
  )
  if (locked > 0) return true
  // If this statement is killed, MySQL may answer that it matched no row.
  if ((await tx.count(owned, 'WHERE id = ?', [rowId])) > 0) throw retryable('the lock of an end user was killed')
  return false
}

export async function findSubscription(db: Queries, appId: number, externalRef: string): Promise<Subscription | null> {
  return db.one(subscriptions, 'WHERE app_id = ? AND external_ref = ?', [appId, externalRef])
}

export async function findSubscriptionOfEndUser(db: Queries, endUserId: number): Promise<Subscription | null> {
  return db.one(subscriptions, 'WHERE end_user_id = ?', [endUserId])
}

/** The rows that a presentation of a subscription names. */
export interface PlanAndCustomer {
  readonly plan: NamedPlan
  readonly customer: NamedCustomer | null
}

const PLAN_AND_CUSTOMER = joinedRows(
  'plans plan LEFT JOIN customers customer ON customer.id = ? AND customer.app_id = plan.app_id',
  { plan: plans },
  { customer: namedCustomers },
  {},
)

/** The plan and the customer of a subscription, as it is or will be. */
export async function getPlanAndCustomer(
  db: Queries,
  { appId, planId, customerId }: Pick<Subscription, 'appId' | 'planId' | 'customerId'>,
): Promise<PlanAndCustomer> {
  const found = await db.one(PLAN_AND_CUSTOMER, 'WHERE plan.id = ? AND plan.app_id = ?', [customerId, planId, appId])
  if (!found) throw new Error(`a subscription names plan ${planId}, which does not exist`)
  return found
}

/** A subscription with the rows that its presentations name. */
export interface SubscriptionView extends PlanAndCustomer {
  readonly subscription: Subscription
}

export async function viewSubscription(db: Queries, subscription: Subscription): Promise<SubscriptionView> {
  return { subscription, ...(await getPlanAndCustomer(db, subscription)) }
}

/** Subscriptions `s` with the code of their plan `p`. */
export const subscriptionsWithPlanCode = subscriptions.joined('s', { planCode: exact('p.code', 64) })
export type SubscriptionWithPlanCode = Row<typeof subscriptionsWithPlanCode>

interface SubscriptionKey {
  readonly appId: number
  readonly externalRef: string
}

const nameOf = ({ appId, externalRef }: SubscriptionKey): string => `${appId} ${externalRef}`

const sharedByRef = new SharedRead<SubscriptionKey, SubscriptionWithPlanCode>(nameOf, async (db, keys) => {
  const { sql, params } = anyOf(
    's.app_id = ? AND s.external_ref = ?',
    keys.map(({ appId, externalRef }) => [appId, externalRef]),
  )
  const found = await db.all(subscriptionsWithPlanCode, `JOIN plans p ON p.id = s.plan_id ${sql}`, params)
  return new Map(found.map((row) => [nameOf(row), row]))
})

/** A subscription with its plan's code, which is all that the API's hottest read needs; throws `not_found`. */
export async function getSubscriptionWithPlanCode(
  db: Queries,
  appId: number,
  externalRef: string,
): Promise<SubscriptionWithPlanCode> {
  return found(await sharedByRef.find(db, { appId, externalRef }), 'subscription')
}

export async function getSubscription(db: Queries, appId: number, externalRef: string): Promise<Subscription> {
  return found(await findSubscription(db, appId, externalRef), 'subscription')
}

export async function findSubscriptionById(db: Queries, subscriptionId: number): Promise<Subscription | null> {
  return db.one(subscriptions, 'WHERE id = ?', [subscriptionId])
}

export const subscriptionsByRenewalToken = rowsBy(subscriptions, 'renewalToken')

export async function insertSubscription(tx: Tx, row: Omit<Subscription, 'id'>): Promise<Subscription> {
  return { ...row, id: await tx.insert(subscriptions, row) }
}

/** Saves a change made from `fromRevision`; throws if it has changed since, so that nothing is overwritten. */
export async function updateSubscription(
  tx: Tx,
  subscriptionId: number,
  fromRevision: number,
  changes: Partial<Omit<Subscription, 'id' | 'appId' | 'endUserId' | 'externalRef'>>,
): Promise<void> {
  const updated = await tx.update(subscriptions, { id: subscriptionId, revision: fromRevision }, changes)
  if (updated !== 1) throw new Error(`subscription ${subscriptionId} is no longer at revision ${fromRevision}`)
}

/** Grants the trial; returns false if this end user had one on the plan before. */
export async function insertTrialGrant(tx: Tx, row: Omit<TrialGrant, 'id'>): Promise<boolean> {
  return insertedNew('trial_grants_end_user_plan', tx.insert(trialGrants, row))
}

export async function hadTrial(db: Queries, endUserId: number, planId: number): Promise<boolean> {
  return (await db.one(trialGrants, 'WHERE end_user_id = ? AND plan_id = ?', [endUserId, planId])) !== null
}

export async function insertLedgerLine(tx: Tx, row: Omit<LedgerLine, 'id'>): Promise<void> {
  await tx.insert(ledgerLines, row)
}

/**
 * Whether a payment (not a free trial) has renewed the period of the subscription that ended at `end`, which moved the end. A change of plan
 * in the same second as the purchase before it may leave the end as it was. False if there is no end, or if it is still the end now.
 */
export async function wasRenewed(
  db: Queries,
  { id, currentPeriodEnd }: Pick<Subscription, 'id' | 'currentPeriodEnd'>,
  end: AppTime | null,
): Promise<boolean> {
  if (end === null || end.getTime() === currentPeriodEnd?.getTime()) return false
  const renewing =
    'WHERE subscription_id = ? AND end_before = ? AND NOT (end_after <=> end_before) AND transaction_id IS NOT NULL'
  return (await db.count(ledgerLines, renewing, [id, end])) > 0
}

/** A ledger line with the quote of its payment. */
export interface QuotedLine extends Omit<LedgerLine, keyof ChoiceLine>, ChoiceLine {
  readonly soldPriceId: number
  /** Whether an earlier version wrote it, which had other rules and stored no quotes. */
  readonly isOlder: boolean
}

const WITH_QUOTE = ledgerLines.joined('l', {
  quotedPurpose: exact('t.purpose', 16).as<Purpose>().nullable(),
  isByRenewalLink: flag('COALESCE(t.is_renewal, 0)'),
  soldPlanId: bigint('COALESCE(t.plan_id, l.plan_id)'),
  soldPriceId: bigint('COALESCE(t.price_id, l.price_id)'),
  knownOpenedAt: appTime('COALESCE(l.opened_at, t.created_at, l.applied_at)'),
})

/** The ledger of a subscription, in order. */
export async function listLedger(db: Queries, subscriptionId: number): Promise<QuotedLine[]> {
  return (await listLedgers(db, [subscriptionId])).get(subscriptionId) ?? []
}

/** The ledgers of several subscriptions by their ids, each in order; one without lines is absent. */
export async function listLedgers(
  db: Queries,
  subscriptionIds: readonly number[],
): Promise<ReadonlyMap<number, QuotedLine[]>> {
  const rows = await db.all(
    WITH_QUOTE,
    `LEFT JOIN transactions t ON t.id = l.transaction_id
     WHERE l.subscription_id IN (?) ORDER BY l.subscription_id, l.revision`,
    [subscriptionIds],
  )
  const lines = rows.map(({ quotedPurpose, knownOpenedAt, ...row }) => ({
    ...row,
    purpose: row.isTrial && isPeriodSold(row.kind) ? ('trial' as const) : quotedPurpose,
    openedAt: knownOpenedAt,
    isOlder: row.openedAt === null,
  }))
  return Map.groupBy(lines, (line) => line.subscriptionId)
}

function isPeriodSold(kind: ChoiceLine['kind']): boolean {
  return kind === 'started' || kind === 'restarted'
}

/** How the subscription's plan and price were last chosen; null if its ledger is empty. */
export async function findLastPlanChoice(db: Queries, subscriptionId: number): Promise<PlanChoice | null> {
  const lines = await listLedger(db, subscriptionId)
  return lines.reduce<PlanChoice | null>((last, line) => planChoiceAfter(last, line), null)
}

export async function findLineOfTransaction(db: Queries, transactionId: number): Promise<LedgerLine | null> {
  return db.one(ledgerLines, 'WHERE transaction_id = ?', [transactionId])
}

/** The line of the payment that set the subscription's end; null if no payment did. */
export async function findLineOfEnd(
  db: Queries,
  { id: subscriptionId, currentPeriodEnd }: Subscription,
): Promise<LedgerLine | null> {
  return db.one(
    ledgerLines,
    'WHERE subscription_id = ? AND end_after = ? AND transaction_id IS NOT NULL ORDER BY revision DESC LIMIT 1',
    [subscriptionId, currentPeriodEnd],
  )
}
