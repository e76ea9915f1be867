import { requireSelf, type AppRoute, type Caller } from '#apps/authenticate.ts'
import type { Context } from '#context.ts'
import { formatCursor } from '#http/page-of.ts'
import { notFound } from '#shared/errors.ts'
import { parseNumericId } from '#shared/ids.ts'
import { listTransactions } from './list-transactions.ts'
import { presentTransaction } from './present.ts'
import { findTransaction, type Transaction } from './store.ts'

export const transactionRoutes: readonly AppRoute[] = [
  {
    method: 'GET',
    path: '/api/v1/transactions',
    access: 'any',
    async run(ctx, { caller, query }) {
      if (typeof query['external_ref'] === 'string') requireSelf(caller, query['external_ref'])
      const own = caller.endUser === null ? {} : { external_ref: caller.endUser }
      const { rows, next } = await listTransactions(ctx, caller.appId, { ...query, ...own })
      return { data: rows.map(presentTransaction), nextCursor: formatCursor(next) }
    },
  },
  {
    method: 'GET',
    path: '/api/v1/transactions/:id',
    access: 'any',
    async run(ctx, { caller, params }) {
      return { data: presentTransaction(await ownTransaction(ctx, caller, params['id'] ?? '')) }
    },
  },
]

/** Another app's transaction is not there, and neither is another end user's for a client. */
async function ownTransaction(ctx: Context, caller: Caller, idText: string): Promise<Transaction> {
  const id = parseNumericId(idText)
  const transaction = id === null ? null : await findTransaction(ctx.db, id)
  const isOwn =
    transaction?.appId === caller.appId && (caller.endUser === null || caller.endUser === transaction.externalRef)
  if (!transaction || !isOwn) throw notFound('transaction')
  return transaction
}
