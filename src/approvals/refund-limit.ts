import { auditName, type Caller } from '#commands/caller.ts'
import type { Tx } from '#commands/transaction.ts'
import { AppError, notFound } from '#shared/errors.ts'
import { englishMoney } from '#shared/money.ts'
import { closeApproval, lockApproval, type Approval, type RefundTerms } from './store.ts'

/** A refund that is about to be ordered, under the lock of what it is about. */
export interface WantedRefund {
  readonly terms: RefundTerms
  /** What it is about, as it is now. */
  readonly seen: string
  readonly appId: number | null
  readonly transactionId: number | null
  readonly paymentId: number | null
  readonly amount: number
  /** What was refunded of the same before, or is being refunded. */
  readonly refundedBefore: number
  readonly currency: string
}

/** The grant that allows a refund above the limit. */
export interface Grant {
  readonly approvalId: number
  readonly note: string
}

/** A refund needs a second operator. Nothing of it was written; `requestApproval` stores it. */
export class ApprovalNeeded extends Error {
  override readonly name = 'ApprovalNeeded'
  readonly wanted: WantedRefund

  constructor(wanted: WantedRefund) {
    super('needs the approval of another operator')
    this.wanted = wanted
  }
}

/** What a grant is about has changed since it was asked for. */
export class StaleApproval extends Error {
  override readonly name = 'StaleApproval'
}

/** Whether the refunds together pass the limit of BILLING_REFUND_LIMIT. */
function passesLimit(limits: ReadonlyMap<string, number>, wanted: WantedRefund): boolean {
  const limit = limits.get(wanted.currency)
  return limit !== undefined && wanted.refundedBefore + wanted.amount > limit
}

/**
 * Checks a refund against the limit. Returns null if it may go ahead: it is within the limit, or the grant allows it. Above the limit,
 * throws `ApprovalNeeded`; in a rehearsal, returns the sentence that says it would wait. A step.
 */
export async function refuseAboveLimit(
  tx: Tx,
  caller: Caller,
  wanted: WantedRefund,
  grant: Grant | null,
): Promise<string | null> {
  if (grant) {
    await useGrant(tx, caller, wanted, grant)
    return null
  }
  const { refundLimit } = tx.ctx.config
  if (!passesLimit(refundLimit, wanted)) return null
  if (!tx.ctx.rehearsal) throw new ApprovalNeeded(wanted)
  return `it waits for another operator: ${limitWords(refundLimit, wanted)}`
}

export function limitWords(
  limits: ReadonlyMap<string, number>,
  { refundedBefore, amount, currency }: WantedRefund,
): string {
  const limit = englishMoney(limits.get(currency) ?? 0, currency)
  return `refunds of ${englishMoney(refundedBefore + amount, currency)} pass the limit of ${limit} (BILLING_REFUND_LIMIT)`
}

/** The name of a person, whether or not they worked under sudo. */
function personOf(actor: string): string {
  return actor.replace(/ \(sudo\)$/, '')
}

/** What was approved is the dry run that was stored, and nothing else. */
async function useGrant(tx: Tx, caller: Caller, wanted: WantedRefund, { approvalId, note }: Grant): Promise<void> {
  const approval = await lockOpen(tx, approvalId)
  refuseOwn(approval, caller)
  if (approval.seen !== wanted.seen || approval.amount !== wanted.amount) throw new StaleApproval()
  await closeApproval(tx, approvalId, { status: 'granted', ...decidedBy(tx, caller, note) })
}

/** The approval, which is open, under its lock. Throws `not_found`, and `invalid_request` where it was decided. */
export async function lockOpen(tx: Tx, approvalId: number): Promise<Approval> {
  const approval = await lockApproval(tx, approvalId)
  if (!approval) throw notFound(`approval ${approvalId}`)
  if (approval.status !== 'open')
    throw new AppError('invalid_request', `approval ${approvalId} is ${approval.status}: it can no longer be decided`)
  return approval
}

function refuseOwn({ id, requestedBy }: Approval, caller: Caller): void {
  if (personOf(requestedBy) === personOf(auditName(caller)))
    throw new AppError('forbidden', `forbidden: you asked for approval ${id}, so another operator must grant it`)
}

export function decidedBy(tx: Tx, caller: Caller, note: string): Pick<Approval, 'decidedBy' | 'decidedAt' | 'note'> {
  return { decidedBy: auditName(caller).slice(0, 191), decidedAt: tx.now, note }
}
