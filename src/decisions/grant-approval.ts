import { z } from 'zod'
import { expireApproval } from '#approvals/deny-approval.ts'
import { StaleApproval, type Grant } from '#approvals/refund-limit.ts'
import { getApproval, type Approval } from '#approvals/store.ts'
import type { Caller } from '#commands/caller.ts'
import { noteField } from '#commands/operator-note.ts'
import { perform } from '#commands/perform.ts'
import type { Context } from '#context.ts'
import { AppError } from '#shared/errors.ts'
import { integer, validate } from '#shared/validate.ts'
import { refundPayment } from './refund-payment.ts'
import { resolveTransaction } from './resolve-transaction.ts'

const GrantInput = z.strictObject({ approval_id: integer(1), note: noteField })

/**
 * Makes the refund that another operator requested. Throws `not_found`, `forbidden` for one's own request, `invalid_request` if it was
 * already decided or is stale (its subject has changed), and the errors of `resolveTransaction`.
 */
export async function grantApproval(ctx: Context, caller: Caller, input: unknown): Promise<Approval> {
  const { approval_id: approvalId, note } = validate(GrantInput, input)
  const approval = await getApproval(ctx.db, approvalId)
  try {
    await makeRefund(ctx, caller, approval, { approvalId, note })
  } catch (error) {
    if (!(error instanceof StaleApproval)) throw error
    if (!ctx.rehearsal) await perform(ctx, caller, expireApproval, input, null)
    throw new AppError(
      'invalid_request',
      `approval ${approvalId} is stale: the payment or transaction has changed since; request the refund again`,
    )
  }
  return getApproval(ctx.db, approvalId)
}

async function makeRefund(ctx: Context, caller: Caller, { terms }: Approval, grant: Grant): Promise<void> {
  const { of, id, ...asked } = terms
  if (of === 'payment') await refundPayment(ctx, caller, { payment_id: id, ...asked }, grant)
  else await resolveTransaction(ctx, caller, { transactionId: id, action: 'refund', ...asked }, grant)
}
