import { getApp } from '#apps/store.ts'
import type { Queries } from '#db/queries.ts'
import type { Payment } from '#payments/store.ts'
import { invalidField } from '#shared/errors.ts'
import { findAssignment, type BankAccountAssignment } from './store.ts'

/** Money that an operator books for a transaction. `appId` null: it belongs to no app yet. */
type BookedByOperator = Pick<Payment, 'appId' | 'bankAccountId' | 'paidAt' | 'receivedAt'>

/**
 * Throws `invalid_request` on `transaction_id` if the money cannot belong to the target app. Another app's money can, if the target uses the
 * bank account that received it, or used it then, and if both are sandbox or both are live. Money that belongs to no app yet can belong to
 * any app that has or had the account.
 */
export async function refuseForeignMoney(
  db: Queries,
  money: BookedByOperator,
  { appId }: { readonly appId: number },
): Promise<void> {
  if (money.appId === appId) return
  if (money.appId !== null) await refuseOtherKind(db, money.appId, appId)
  const { bankAccountId } = money
  if (bankAccountId === null) {
    if (money.appId === null) return
    throw invalidField(
      'transaction_id',
      `belongs to app ${appId}, and the payment to app ${money.appId}: only money on a bank account that both use can be moved; refund it instead`,
    )
  }
  const assignment = await findAssignment(db, appId, bankAccountId)
  if (!assignment)
    throw invalidField(
      'transaction_id',
      `belongs to app ${appId}, which never used bank account ${bankAccountId}, where the money arrived; refund it instead`,
    )
  if (money.appId !== null && !wasUsed(assignment, money))
    throw invalidField(
      'transaction_id',
      `belongs to app ${appId}, which does not use bank account ${bankAccountId} and did not when the money arrived; refund it instead`,
    )
}

async function refuseOtherKind(db: Queries, sourceId: number, targetId: number): Promise<void> {
  const [source, target] = [await getApp(db, sourceId), await getApp(db, targetId)]
  if (source.isSandbox === target.isSandbox) return
  const kindOf = ({ isSandbox }: typeof source): string => (isSandbox ? 'sandbox' : 'live')
  throw invalidField(
    'transaction_id',
    `belongs to a ${kindOf(target)} app, and the payment to a ${kindOf(source)} one: money never moves between sandbox and live; refund it instead`,
  )
}

function wasUsed(
  { assignedAt, endedAt }: BankAccountAssignment,
  { paidAt, receivedAt }: Pick<BookedByOperator, 'paidAt' | 'receivedAt'>,
): boolean {
  return endedAt === null || (assignedAt <= receivedAt && endedAt > paidAt)
}
