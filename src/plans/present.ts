import { z } from 'zod'
import { INTERVAL_UNITS, TRIAL_UNITS } from '#shared/interval.ts'
import { formatId } from '#shared/ids.ts'
import { formatTimestamp } from '#shared/time.ts'
import { publicId, timestamp } from '#shared/validate.ts'
import { SALE_STATUSES } from './sale-status.ts'
import type { PlanWithPrices, Price } from './store.ts'

/** The Price of the API; `trial` is null if it has none. */
const PriceOutput = z
  .strictObject({
    id: publicId('price'),
    name: z.string().nullable(),
    amount: z.int().describe("In the currency's smallest unit."),
    currency: z.string().describe('ISO 4217, in upper case.'),
    interval_unit: z.enum(INTERVAL_UNITS),
    interval_count: z.int(),
    trial: z
      .strictObject({
        amount: z.int().describe('0 for a free trial.'),
        interval_unit: z.enum(TRIAL_UNITS),
        interval_count: z.int(),
      })
      .nullable()
      .describe('Null if the price has no trial.'),
    status: z.enum(SALE_STATUSES).describe('An archived price cannot be bought; subscriptions on it keep renewing.'),
    created_at: timestamp,
  })
  .meta({ id: 'Price', description: 'What one period of a plan costs.' })

/** The Plan of the API (R42): writes show all prices, reads those on sale. */
export const PlanOutput = z
  .strictObject({
    id: publicId('plan'),
    code: z.string().describe('Your name for the plan; `plan_ref` in webhooks.'),
    name: z.string(),
    description: z.string().nullable(),
    status: z.enum(SALE_STATUSES),
    prices: z.array(PriceOutput).describe('The prices on sale; in the response to a write, all prices.'),
    created_at: timestamp,
    updated_at: timestamp,
  })
  .meta({
    id: 'Plan',
    description: 'Something that end users subscribe to.',
    examples: [
      {
        id: 'plan_1',
        code: 'premium',
        name: 'Premium',
        description: null,
        status: 'active',
        prices: [
          {
            id: 'price_1',
            name: 'Monthly',
            amount: 99000,
            currency: 'VND',
            interval_unit: 'month',
            interval_count: 1,
            trial: { amount: 0, interval_unit: 'day', interval_count: 7 },
            status: 'active',
            created_at: '2026-12-01 09:30:00',
          },
        ],
        created_at: '2026-12-01 09:30:00',
        updated_at: '2026-12-01 09:30:00',
      },
    ],
  })

/** The plan with all its prices. */
export function presentPlan(plan: PlanWithPrices): z.input<typeof PlanOutput> {
  return {
    id: formatId('plan', plan.id),
    code: plan.code,
    name: plan.name,
    description: plan.description,
    status: plan.status,
    prices: plan.prices.map(presentPrice),
    created_at: formatTimestamp(plan.createdAt),
    updated_at: formatTimestamp(plan.updatedAt),
  }
}

/** The plan with the prices on sale. */
export function presentPlanOnSale(plan: PlanWithPrices): z.input<typeof PlanOutput> {
  return presentPlan({ ...plan, prices: plan.prices.filter(({ status }) => status === 'active') })
}

/** The plan in the audit log. It may have so many prices that the log could not hold them: each has an entry of its own. */
export function auditedPlan(plan: PlanWithPrices): Omit<z.input<typeof PlanOutput>, 'prices'> & { prices: number } {
  return { ...presentPlan(plan), prices: plan.prices.length }
}

export function presentPrice(price: Price): z.input<typeof PriceOutput> {
  return {
    id: formatId('price', price.id),
    name: price.name,
    amount: price.amount,
    currency: price.currency,
    interval_unit: price.intervalUnit,
    interval_count: price.intervalCount,
    trial: presentTrial(price),
    status: price.status,
    created_at: formatTimestamp(price.createdAt),
  }
}

function presentTrial({ trialAmount, trialIntervalUnit, trialIntervalCount }: Price) {
  if (trialAmount === null || trialIntervalUnit === null || trialIntervalCount === null) return null
  return { amount: trialAmount, interval_unit: trialIntervalUnit, interval_count: trialIntervalCount }
}
