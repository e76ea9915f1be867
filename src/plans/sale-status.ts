import { z } from 'zod'

export const SALE_STATUSES = ['active', 'archived'] as const
export type SaleStatus = (typeof SALE_STATUSES)[number]

/** Whether plans and prices can be bought, and promotions be used: `active`, or `archived`. */
export const saleStatus = z.enum(SALE_STATUSES, 'must be active or archived')
