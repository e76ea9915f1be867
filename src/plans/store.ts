import { bigint, exact, id, int, realTime, text, words } from '#db/columns.ts'
import { byId } from '#db/by-id.ts'
import { shape, table, joinedRows, type Row } from '#db/table.ts'
import { where } from '#db/conditions.ts'
import type { Queries } from '#db/queries.ts'
import type { Tx } from '#commands/transaction.ts'
import { found } from '#shared/errors.ts'
import type { IntervalUnit, TrialUnit } from '#shared/interval.ts'
import type { SaleStatus } from './sale-status.ts'

export const plans = table('plans', {
  id: id(),
  appId: bigint('app_id'),
  code: exact('code', 64),
  name: words('name', 191),
  description: text('description').nullable(),
  status: exact('status', 16).as<SaleStatus>(),
  createdAt: realTime('created_at'),
  updatedAt: realTime('updated_at'),
})
export type Plan = Row<typeof plans>

/** The columns that events contain. */
export const namedPlans = plans.only('id', 'code')
export type NamedPlan = Row<typeof namedPlans>

/** Amounts are in the smallest unit of `currency`. The three trial columns are all null or all set. */
export const prices = table('prices', {
  id: id(),
  planId: bigint('plan_id'),
  name: words('name', 191).nullable(),
  amount: bigint('amount'),
  currency: exact('currency', 3),
  intervalUnit: exact('interval_unit', 16).as<IntervalUnit>(),
  intervalCount: int('interval_count'),
  trialAmount: bigint('trial_amount').nullable(),
  trialIntervalUnit: exact('trial_interval_unit', 16).as<TrialUnit>().nullable(),
  trialIntervalCount: int('trial_interval_count').nullable(),
  status: exact('status', 16).as<SaleStatus>(),
  createdAt: realTime('created_at'),
})
export type Price = Row<typeof prices>

/** The columns that decide how long a payment lasts. */
export const priceIntervals = prices.only(
  'id',
  'intervalUnit',
  'intervalCount',
  'trialIntervalUnit',
  'trialIntervalCount',
)
export type PriceIntervals = Row<typeof priceIntervals>

/** The columns on which a checkout is decided. */
export const offeredPrices = prices.only(
  'id',
  'amount',
  'currency',
  'intervalUnit',
  'intervalCount',
  'trialAmount',
  'trialIntervalUnit',
  'trialIntervalCount',
  'status',
)
export const offeredPlans = plans.only('id', 'code', 'status')

/** A price that a checkout may name. */
export interface OfferedPrice {
  readonly price: Row<typeof offeredPrices>
  readonly plan: Row<typeof offeredPlans>
}

export interface PlanWithPrices extends Plan {
  prices: Price[]
}

export interface PriceWithPlan {
  price: Price
  plan: Plan
}

export async function insertPlan(tx: Tx, row: Omit<Plan, 'id'>): Promise<number> {
  return tx.insert(plans, row)
}

export async function insertPrices(tx: Tx, rows: readonly Omit<Price, 'id'>[]): Promise<void> {
  await tx.insertAll(prices, rows)
}

export async function updatePlanRow(
  tx: Tx,
  planId: number,
  changes: Partial<Pick<Plan, 'name' | 'description' | 'status'>>,
): Promise<void> {
  await tx.update(plans, { id: planId }, { ...changes, updatedAt: tx.now })
}

export async function updatePriceRow(
  tx: Tx,
  priceId: number,
  changes: Partial<Pick<Price, 'name' | 'status'>>,
): Promise<void> {
  await tx.update(prices, { id: priceId }, changes)
}

export async function touchPlan(tx: Tx, planId: number): Promise<void> {
  await tx.update(plans, { id: planId }, { updatedAt: tx.now })
}

export async function findPlan(db: Queries, appId: number, planId: number): Promise<Plan | null> {
  return db.one(plans, 'WHERE id = ? AND app_id = ?', [planId, appId])
}

/** The app's plan with all its prices, oldest price first; throws `not_found`. */
export async function getPlan(db: Queries, appId: number, planId: number): Promise<PlanWithPrices> {
  return withPrices(await findPlan(db, appId, planId), () => db.all(prices, 'WHERE plan_id = ? ORDER BY id', [planId]))
}

/** The plan and its prices as they are now, locked until the commit: for a change that records what they were. Throws `not_found`. */
export async function lockPlan(tx: Tx, appId: number, planId: number): Promise<PlanWithPrices> {
  const plan = await tx.one(plans, 'WHERE id = ? AND app_id = ? FOR UPDATE', [planId, appId])
  return withPrices(plan, () => tx.all(prices, 'WHERE plan_id = ? ORDER BY id FOR UPDATE', [planId]))
}

async function withPrices(plan: Plan | null, readPrices: () => Promise<Price[]>): Promise<PlanWithPrices> {
  return { ...found(plan, 'plan'), prices: await readPrices() }
}

/** The app's plans with all their prices, newest plan first. */
export async function listPlans(db: Queries, appId: number, status?: SaleStatus): Promise<PlanWithPrices[]> {
  const ofApp = where(['app_id = ?', appId], status ? ['status = ?', status] : null)
  const found = await db.all(plans, `${ofApp.sql} ORDER BY created_at DESC, id DESC`, ofApp.params)
  if (found.length === 0) return []
  const all = await db.all(prices, 'WHERE plan_id IN (?) ORDER BY id', [found.map((plan) => plan.id)])
  const byPlan = Map.groupBy(all, ({ planId }) => planId)
  return found.map((plan) => ({ ...plan, prices: byPlan.get(plan.id) ?? [] }))
}

const PRICE_WITH_PLAN = joinedRows(
  'prices price JOIN plans plan ON plan.id = price.plan_id',
  { price: prices, plan: plans },
  {},
  {},
)

/** A price of the app with its plan, on sale or not; null if there is none. */
export async function findPrice(db: Queries, appId: number, priceId: number): Promise<PriceWithPlan | null> {
  return db.one(PRICE_WITH_PLAN, 'WHERE price.id = ? AND plan.app_id = ?', [priceId, appId])
}

/** Plans by id, for presenting lists. */
export async function listPlansByIds(db: Queries, planIds: readonly number[]): Promise<Map<number, Plan>> {
  return byId(db, plans, planIds)
}

/** Prices by id, on sale or not. */
export async function listPricesByIds(db: Queries, priceIds: readonly number[]): Promise<Map<number, Price>> {
  return byId(db, prices, priceIds)
}

/** The codes among `codes` that no plan of the app has. */
export async function listUnknownPlanCodes(db: Queries, appId: number, codes: readonly string[]): Promise<string[]> {
  const found = await db.all(
    shape({ code: exact('code', 64) }),
    'SELECT code FROM plans WHERE app_id = ? AND code IN (?)',
    [appId, codes],
  )
  const known = new Set(found.map(({ code }) => code))
  return codes.filter((code) => !known.has(code))
}
