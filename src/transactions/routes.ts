import { requireSelf, route, type ApiCaller, type AppRoute } from '#apps/authenticate.ts'
import type { Context } from '#context.ts'
import { notFound } from '#shared/errors.ts'
import { parseNumericId } from '#shared/ids.ts'
import { listTransactions, ListTransactionsQuery } from './list-transactions.ts'
import { presentTransaction, TransactionOutput } from './present.ts'
import { findShownTransaction, type ShownTransaction } from './store.ts'

export const transactionRoutes: readonly AppRoute[] = [
  route.list({
    id: 'listTransactions',
    summary: 'List transactions',
    description: "Newest first. An end user's client sees only its own.",
    filter: ListTransactionsQuery,
    method: 'GET',
    path: '/api/v1/transactions',
    access: 'any',
    item: TransactionOutput,
    async list(ctx, { caller, query }) {
      const named = query['external_ref'] ?? caller.endUser
      if (named !== null) requireSelf(caller, named)
      return listTransactions(ctx, caller.appId, named === null ? query : { ...query, external_ref: named })
    },
    present: presentTransaction,
  }),
  route.query({
    id: 'getTransaction',
    summary: 'Get a transaction',
    description: 'One payment: its state, what was received and refunded, and why an operator must review it.',
    method: 'GET',
    path: '/api/v1/transactions/:id',
    access: 'any',
    output: TransactionOutput,
    query: async (ctx, { caller, params }) => presentTransaction(await ownTransaction(ctx, caller, params['id'] ?? '')),
  }),
]

/** Throws `not_found` for another app's transaction, and for a client of another end user's. */
async function ownTransaction(ctx: Context, caller: ApiCaller, idText: string): Promise<ShownTransaction> {
  const id = parseNumericId(idText)
  const transaction = id === null ? null : await findShownTransaction(ctx.db, id)
  const isOwn =
    transaction?.appId === caller.appId && (caller.endUser === null || caller.endUser === transaction.externalRef)
  if (!transaction || !isOwn) throw notFound('transaction')
  return transaction
}
