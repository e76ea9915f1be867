import { z } from 'zod'

/** Whether plans and prices can be bought: `active`, or `archived`. */
export const saleStatus = z.enum(['active', 'archived'], 'must be active or archived')
