import type { Context } from '#context.ts'
import { notFound } from '#shared/errors.ts'
import { findApproval, listApprovalRows, type Approval } from './store.ts'

/** The newest 200 requests, the open ones first. */
export async function listApprovals(ctx: Context): Promise<Approval[]> {
  return listApprovalRows(ctx.db)
}

/** One request. Throws `not_found`. */
export async function getApproval(ctx: Context, approvalId: number): Promise<Approval> {
  const approval = await findApproval(ctx.db, approvalId)
  if (!approval) throw notFound(`approval ${approvalId}`)
  return approval
}
