import { EntitySchema, In } from 'typeorm'
import { bigint, exact, id, instant, int, longtext, nullable, words } from '#db/columns.ts'
import { insertedId } from '#db/transaction.ts'
import type { ReadOnly, Tx } from '#db/transaction.ts'
import { notFound } from '#shared/errors.ts'
import type { IntervalUnit, TrialUnit } from '#shared/interval.ts'

export type SaleStatus = 'active' | 'archived'

export interface Plan {
  id: number
  appId: number
  code: string
  name: string
  description: string | null
  status: SaleStatus
  createdAt: Date
  updatedAt: Date
}

export const plans = new EntitySchema<Plan>({
  name: 'plans',
  columns: {
    id,
    appId: bigint('app_id'),
    code: exact('code', 64),
    name: words('name', 191),
    description: nullable(longtext('description')),
    status: exact('status', 16),
    createdAt: instant('created_at'),
    updatedAt: instant('updated_at'),
  },
})

/** Amounts are in the smallest unit of `currency`. The three trial columns are all null or all set. */
export interface Price {
  id: number
  planId: number
  name: string | null
  amount: number
  currency: string
  intervalUnit: IntervalUnit
  intervalCount: number
  trialAmount: number | null
  trialIntervalUnit: TrialUnit | null
  trialIntervalCount: number | null
  status: SaleStatus
  createdAt: Date
}

export const prices = new EntitySchema<Price>({
  name: 'prices',
  columns: {
    id,
    planId: bigint('plan_id'),
    name: nullable(words('name', 191)),
    amount: bigint('amount'),
    currency: exact('currency', 3),
    intervalUnit: exact('interval_unit', 16),
    intervalCount: int('interval_count'),
    trialAmount: nullable(bigint('trial_amount')),
    trialIntervalUnit: nullable(exact('trial_interval_unit', 16)),
    trialIntervalCount: nullable(int('trial_interval_count')),
    status: exact('status', 16),
    createdAt: instant('created_at'),
  },
})

export interface PlanWithPrices extends Plan {
  prices: Price[]
}

export interface PriceWithPlan {
  price: Price
  plan: Plan
}

export async function insertPlan(tx: Tx, row: Omit<Plan, 'id'>): Promise<number> {
  const result = await tx.manager.insert(plans, row)
  return insertedId(result)
}

export async function insertPrices(tx: Tx, rows: readonly Omit<Price, 'id'>[]): Promise<void> {
  await tx.manager.insert(prices, rows as Omit<Price, 'id'>[])
}

export async function updatePlanRow(
  tx: Tx,
  planId: number,
  changes: Partial<Pick<Plan, 'name' | 'description' | 'status'>>,
): Promise<void> {
  await tx.manager.update(plans, { id: planId }, { ...changes, updatedAt: tx.now })
}

export async function updatePriceRow(
  tx: Tx,
  priceId: number,
  changes: Partial<Pick<Price, 'name' | 'status'>>,
): Promise<void> {
  await tx.manager.update(prices, { id: priceId }, changes)
}

export async function touchPlan(tx: Tx, planId: number): Promise<void> {
  await tx.manager.update(plans, { id: planId }, { updatedAt: tx.now })
}

export async function findPlan(db: ReadOnly, appId: number, planId: number): Promise<Plan | null> {
  return db.manager.findOneBy(plans, { id: planId, appId })
}

/** The app's plan with all its prices, oldest price first; throws `not_found`. */
export async function getPlan(db: ReadOnly, appId: number, planId: number): Promise<PlanWithPrices> {
  const plan = await db.manager.findOneBy(plans, { id: planId, appId })
  if (!plan) throw notFound('plan')
  return { ...plan, prices: await db.manager.find(prices, { where: { planId }, order: { id: 'ASC' } }) }
}

/** The app's plans with all their prices, newest plan first. */
export async function listPlans(db: ReadOnly, appId: number, status?: SaleStatus): Promise<PlanWithPrices[]> {
  const found = await db.manager.find(plans, {
    where: { appId, ...(status ? { status } : {}) },
    order: { createdAt: 'DESC', id: 'DESC' },
  })
  if (found.length === 0) return []
  const all = await db.manager.find(prices, {
    where: { planId: In(found.map((plan) => plan.id)) },
    order: { id: 'ASC' },
  })
  const byPlan = Map.groupBy(all, ({ planId }) => planId)
  return found.map((plan) => ({ ...plan, prices: byPlan.get(plan.id) ?? [] }))
}

/** A price of the app with its plan, on sale or not; null where there is none. */
export async function findPrice(db: ReadOnly, appId: number, priceId: number): Promise<PriceWithPlan | null> {
  const price = await db.manager.findOneBy(prices, { id: priceId })
  const plan = price && (await db.manager.findOneBy(plans, { id: price.planId, appId }))
  return price && plan ? { price, plan } : null
}

/** Plans by id, for presenting lists. */
export async function listPlansByIds(db: ReadOnly, planIds: readonly number[]): Promise<Map<number, Plan>> {
  if (planIds.length === 0) return new Map()
  const found = await db.manager.find(plans, { where: { id: In([...new Set(planIds)]) } })
  return new Map(found.map((plan) => [plan.id, plan]))
}

export async function findPlanCode(db: ReadOnly, planId: number): Promise<string | null> {
  const plan = await db.manager.findOne(plans, { where: { id: planId }, select: { code: true } })
  return plan && plan.code
}
