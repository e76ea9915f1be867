import { auditName, type Caller } from '#commands/caller.ts'
import type { Tx } from '#commands/transaction.ts'
import { AppError, found } from '#shared/errors.ts'
import { englishMoney } from '#shared/money.ts'
import { closeApproval, lockApproval, type Approval, type RefundTerms } from './store.ts'

/** A refund that is about to be ordered, read under the lock of its transaction or payment. */
export interface RefundRequest {
  readonly terms: RefundTerms
  /** The state of its transaction or payment now. */
  readonly seen: string
  readonly appId: number | null
  readonly transactionId: number | null
  readonly paymentId: number | null
  readonly amount: number
  /** The amount already refunded of the same money, or being refunded. */
  readonly refundedBefore: number
  readonly currency: string
}

/** The grant that allows a refund above the limit. */
export interface Grant {
  readonly approvalId: number
  readonly note: string
}

/** A refund needs a second operator. Nothing was written; `requestApproval` stores the request. */
export class ApprovalNeeded extends Error {
  override readonly name = 'ApprovalNeeded'
  readonly request: RefundRequest

  constructor(request: RefundRequest) {
    super('needs the approval of another operator')
    this.request = request
  }
}

/** The transaction or payment has changed since the approval was requested. */
export class StaleApproval extends Error {
  override readonly name = 'StaleApproval'
}

/** Whether the refunds together exceed the limit of BILLING_REFUND_LIMIT. */
function exceedsLimit(limits: ReadonlyMap<string, number>, request: RefundRequest): boolean {
  const limit = limits.get(request.currency)
  return limit !== undefined && request.refundedBefore + request.amount > limit
}

/**
 * Checks a refund against the limit. Returns null if it may go ahead: it is within the limit, or the grant allows it. Above the limit,
 * throws `ApprovalNeeded`; in a rehearsal, returns the sentence that says it would wait. A step.
 */
export async function refuseAboveLimit(
  tx: Tx,
  caller: Caller,
  request: RefundRequest,
  grant: Grant | null,
): Promise<string | null> {
  if (grant) {
    await useGrant(tx, caller, request, grant)
    return null
  }
  const { refundLimit } = tx.ctx.config
  if (!exceedsLimit(refundLimit, request)) return null
  if (!tx.ctx.rehearsal) throw new ApprovalNeeded(request)
  return `it waits for another operator: ${limitWords(refundLimit, request)}`
}

export function limitWords(
  limits: ReadonlyMap<string, number>,
  { refundedBefore, amount, currency }: RefundRequest,
): string {
  const limit = englishMoney(limits.get(currency) ?? 0, currency)
  return `refunds of ${englishMoney(refundedBefore + amount, currency)} pass the limit of ${limit} (BILLING_REFUND_LIMIT)`
}

/** The name of a person, whether or not they worked under sudo. */
function personOf(actor: string): string {
  return actor.replace(/ \(sudo\)$/, '')
}

/** What was approved is the dry run that was stored, and nothing else. */
async function useGrant(tx: Tx, caller: Caller, request: RefundRequest, { approvalId, note }: Grant): Promise<void> {
  const approval = await lockOpen(tx, approvalId)
  refuseOwn(approval, caller)
  if (approval.seen !== request.seen || approval.amount !== request.amount) throw new StaleApproval()
  await closeApproval(tx, approvalId, { status: 'granted', ...decidedBy(tx, caller, note) })
}

/** The approval, which is open, under its lock. Throws `not_found`, and `invalid_request` where it was decided. */
export async function lockOpen(tx: Tx, approvalId: number): Promise<Approval> {
  const approval = found(await lockApproval(tx, approvalId), `approval ${approvalId}`)
  if (approval.status !== 'open')
    throw new AppError('invalid_request', `approval ${approvalId} is ${approval.status}: it can no longer be decided`)
  return approval
}

function refuseOwn({ id, requestedBy }: Approval, caller: Caller): void {
  if (personOf(requestedBy) === personOf(auditName(caller)))
    throw new AppError('forbidden', `forbidden: you asked for approval ${id}, so another operator must grant it`)
}

export function decidedBy(tx: Tx, caller: Caller, note: string): Pick<Approval, 'decidedBy' | 'decidedAt' | 'note'> {
  return { decidedBy: auditName(caller), decidedAt: tx.now, note }
}
