import type { Context } from '#context.ts'
import type { Queries } from '#db/queries.ts'
import { keptOf } from '#payments/balance.ts'
import { hasFailedLater } from '#payments/refund-state.ts'
import { findPayment, listRefundsOfTransaction } from '#payments/store.ts'
import { AppError } from '#shared/errors.ts'
import { getTransaction, type Transaction } from '#transactions/store.ts'
import { resolutionRefusalOf, RESOLUTIONS, type Resolution } from './resolution.ts'

/** The actions that can resolve the transaction. Throws `not_found`, or `invalid_request` with the reasons if there are none. */
export async function possibleResolutions(
  ctx: Context,
  transactionId: number,
  amount: number | null = null,
): Promise<Resolution[]> {
  const transaction = await getTransaction(ctx.db, transactionId)
  const possible = RESOLUTIONS.filter((action) => resolutionRefusalOf(transaction, action, amount) === null)
  if (possible.length > 0) return possible
  const refusals = []
  for (const action of RESOLUTIONS)
    refusals.push(`${action}: ${(await explainRefusal(ctx.db, transaction, action, amount)) ?? ''}`)
  throw new AppError('invalid_request', `transaction ${transactionId} cannot be resolved; ${refusals.join('; ')}`)
}

/** `resolutionRefusalOf`; if a failed refund took the money away from the transaction, it names the command that refunds it again (R131). */
export async function explainRefusal(
  db: Queries,
  transaction: Transaction,
  action: Resolution,
  amount: number | null,
): Promise<string | null> {
  const refusal = resolutionRefusalOf(transaction, action, amount)
  if (refusal === null || action !== 'refund' || keptOf(transaction) > 0) return refusal
  const paymentIds = await listReturnedPayments(db, transaction.id)
  if (paymentIds.length === 0) return refusal
  const commands = paymentIds.map((paymentId) => `payment refund ${paymentId}`)
  return `a refund of it failed, and the money waits outside the transaction: refund it by ${commands.join(', ')}`
}

/** The payments that hold money of this transaction's failed refunds. */
async function listReturnedPayments(db: Queries, transactionId: number): Promise<number[]> {
  const refunds = await listRefundsOfTransaction(db, transactionId)
  const failed = refunds.filter(hasFailedLater)
  const returned: number[] = []
  for (const paymentId of new Set(failed.map((refund) => refund.paymentId)))
    if ((await findPayment(db, paymentId))?.amountLeft) returned.push(paymentId)
  return returned
}
