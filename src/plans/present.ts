import { z } from 'zod'
import { INTERVAL_UNITS } from '#shared/interval.ts'
import { formatId } from '#shared/ids.ts'
import { formatTimestamp } from '#shared/time.ts'
import { timestamp } from '#shared/validate.ts'
import { SALE_STATUSES } from './sale-status.ts'
import type { PlanWithPrices, Price } from './store.ts'

/** The Price of the API; `trial` is null where it has none. */
export const PriceOutput = z.strictObject({
  id: z.string(),
  name: z.string().nullable(),
  amount: z.int(),
  currency: z.string(),
  interval_unit: z.enum(INTERVAL_UNITS),
  interval_count: z.int(),
  trial: z
    .strictObject({
      amount: z.int(),
      interval_unit: z.enum(INTERVAL_UNITS).nullable(),
      interval_count: z.int().nullable(),
    })
    .nullable(),
  status: z.enum(SALE_STATUSES),
  created_at: timestamp,
})

/** The Plan of the API (specification 2): writes show `all` prices, reads those on sale. */
export const PlanOutput = z.strictObject({
  id: z.string(),
  code: z.string(),
  name: z.string(),
  description: z.string().nullable(),
  status: z.enum(SALE_STATUSES),
  prices: z.array(PriceOutput),
  created_at: timestamp,
  updated_at: timestamp,
})

export function presentPlan(plan: PlanWithPrices, { all }: { all: boolean }): z.input<typeof PlanOutput> {
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

export function presentPrice(price: Price): z.input<typeof PriceOutput> {
  return {
    id: formatId('price', price.id),
    name: price.name,
    amount: price.amount,
    currency: price.currency,
    interval_unit: price.intervalUnit,
    interval_count: price.intervalCount,
    trial: price.trialAmount === null ? null : presentTrial(price, price.trialAmount),
    status: price.status,
    created_at: formatTimestamp(price.createdAt),
  }
}

function presentTrial({ trialIntervalUnit, trialIntervalCount }: Price, amount: number) {
  return { amount, interval_unit: trialIntervalUnit, interval_count: trialIntervalCount }
}
