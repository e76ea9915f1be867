import { formatId } from '#shared/ids.ts'
import { formatTimestamp } from '#shared/time.ts'
import type { PlanWithPrices, Price } from './store.ts'

/** The Plan of the API (specification 2): writes show `all` prices, reads those on sale. */
export function presentPlan(plan: PlanWithPrices, { all }: { all: boolean }): Record<string, unknown> {
  return {
    id: formatId('plan', plan.id),
    code: plan.code,
    name: plan.name,
    description: plan.description,
    status: plan.status,
    prices: plan.prices.filter(({ status }) => all || status === 'active').map(presentPrice),
    created_at: formatTimestamp(plan.createdAt),
    updated_at: formatTimestamp(plan.updatedAt),
  }
}

/** The Price of the API; `trial` is null where it has none. */
export function presentPrice(price: Price): Record<string, unknown> {
  return {
    id: formatId('price', price.id),
    name: price.name,
    amount: price.amount,
    currency: price.currency,
    interval_unit: price.intervalUnit,
    interval_count: price.intervalCount,
    trial: price.trialAmount === null ? null : presentTrial(price),
    status: price.status,
    created_at: formatTimestamp(price.createdAt),
  }
}

function presentTrial({ trialAmount, trialIntervalUnit, trialIntervalCount }: Price): Record<string, unknown> {
  return { amount: trialAmount, interval_unit: trialIntervalUnit, interval_count: trialIntervalCount }
}
