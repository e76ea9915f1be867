import { z } from 'zod'
import type { Context } from '#context.ts'
import { listPage, listQueryFields, type Page } from '#http/list-page.ts'
import { text, validate } from '#shared/validate.ts'
import type { ShownTransaction } from './store.ts'
import { listTransactionRows, type TransactionFilter } from './lists/store.ts'

/** The query parameters of `GET /api/v1/transactions`. */
export const ListTransactionsQuery = z.object({
  ...listQueryFields,
  external_ref: text(191).optional().describe('Only transactions of this end user.'),
  status: z
    .enum(['pending', 'completed', 'refunded', 'void'], 'must be pending, completed, refunded or void')
    .optional()
    .describe('Only transactions of this status.'),
  flagged: z
    .string()
    .refine((value) => value === 'true' || value === 'false', 'must be true or false')
    .meta({ type: 'boolean' })
    .transform((value) => value === 'true')
    .optional()
    .describe('Only transactions that an operator must review (`true`), or only the others (`false`).'),
})

/** Further filters for operators. */
type OperatorFilter = Pick<TransactionFilter, 'since' | 'until' | 'provider'>

/** A page of an app's transactions, newest first. `query` is the request's query; `appId` null lists those of all apps. */
export async function listTransactions(
  ctx: Context,
  appId: number | null,
  query: unknown,
  filter: OperatorFilter = {},
): Promise<Page<ShownTransaction>> {
  const { external_ref, status, flagged, ...page } = validate(ListTransactionsQuery, query)
  const asked = { externalRef: external_ref ?? null, status: status ?? null, flagged: flagged ?? null }
  return listPage(
    'transactions',
    page,
    (request) => listTransactionRows(ctx.db, { appId, ...asked, ...filter, ...request }),
    ({ createdAt }) => createdAt,
  )
}
