import { z } from 'zod'
import { SALE_STATUSES } from '#plans/sale-status.ts'
import { formatId } from '#shared/ids.ts'
import { formatTimestamp, formatTimestampOrNull } from '#shared/time.ts'
import { publicId, timestamp } from '#shared/validate.ts'
import type { ShownPromotion } from './store.ts'

/** The Promotion of the API. */
export const PromotionOutput = z
  .strictObject({
    id: publicId('promo'),
    code: z.string().describe('In upper case.'),
    percent: z.int().nullable().describe('What is taken off, in percent; null where `amount` is.'),
    amount: z.int().nullable().describe("What is taken off, in the currency's smallest unit; null where `percent` is."),
    currency: z.string().nullable().describe('The currency of `amount`.'),
    plan_codes: z.array(z.string()).nullable().describe('The plans that it is for; null for all.'),
    every_period: z.boolean().describe('Whether every renewal gets the discount, too.'),
    valid_until: timestamp.nullable(),
    max_uses: z.int().nullable(),
    once_per_user: z.boolean(),
    on_page: z.boolean().describe('Whether payers may type the code on the hosted page.'),
    status: z.enum(SALE_STATUSES),
    uses: z.int().describe('How many payments have used it; renewals of `every_period` do not count.'),
    created_at: timestamp,
  })
  .meta({
    id: 'Promotion',
    description: 'A code that takes something off a payment.',
    examples: [
      {
        id: 'promo_1',
        code: 'TET2027',
        percent: 20,
        amount: null,
        currency: null,
        plan_codes: ['premium'],
        every_period: false,
        valid_until: '2027-02-28 16:59:59',
        max_uses: 500,
        once_per_user: true,
        on_page: false,
        status: 'active',
        uses: 0,
        created_at: '2026-12-01 09:30:00',
      },
    ],
  })

/** The Discount of the API, in checkouts and transactions. */
export const DiscountOutput = z
  .strictObject({
    code: z.string().describe("The promotion's code."),
    amount: z.int().describe("What it takes off, in the currency's smallest unit."),
  })
  .nullable()
  .describe('What a promotion takes off; null without one.')

export function presentPromotion(promotion: ShownPromotion): z.input<typeof PromotionOutput> {
  return {
    id: formatId('promo', promotion.id),
    code: promotion.code,
    percent: promotion.percent,
    amount: promotion.amount,
    currency: promotion.currency,
    plan_codes: promotion.planCodes === null ? null : [...promotion.planCodes],
    every_period: promotion.everyPeriod,
    valid_until: formatTimestampOrNull(promotion.validUntil),
    max_uses: promotion.maxUses,
    once_per_user: promotion.oncePerUser,
    on_page: promotion.onPage,
    status: promotion.status,
    uses: promotion.uses,
    created_at: formatTimestamp(promotion.createdAt),
  }
}
