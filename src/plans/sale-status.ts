import { z } from 'zod'

export const SALE_STATUSES = ['active', 'archived'] as const

/** Whether plans and prices can be bought: `active`, or `archived`. */
export const saleStatus = z.enum(SALE_STATUSES, 'must be active or archived')
