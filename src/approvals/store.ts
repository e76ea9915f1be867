import { bigint, exact, id, json, realTime, text, words } from '#db/columns.ts'
import { insertedNew } from '#db/database-error.ts'
import type { Queries } from '#db/queries.ts'
import { table, type Row } from '#db/table.ts'
import type { Tx } from '#commands/transaction.ts'
import { found } from '#shared/errors.ts'

export type ApprovalStatus = 'open' | 'granted' | 'denied' | 'stale'

/** What an operator asked for, as its command takes it. */
export interface RefundTerms {
  readonly of: 'transaction' | 'payment'
  readonly id: number
  readonly amount: number | null
  readonly reference: string | null
  readonly note: string
}

/** A refund above the limit, which waits for a second operator. */
export const approvals = table('approvals', {
  id: id(),
  status: exact('status', 16).as<ApprovalStatus>(),
  /** Unique among open ones, so that the same refund waits once; null once it is decided. */
  openKey: exact('open_key', 64).nullable(),
  requestedBy: words('requested_by', 191),
  requestedAt: realTime('requested_at'),
  /** The command line that asks for the same. */
  command: words('command', 1000),
  terms: json<RefundTerms>('terms'),
  /** What the refund is about, as it was; another state makes the approval stale. */
  seen: text('seen'),
  /** What the dry run said. */
  effects: json<readonly string[]>('effects'),
  appId: bigint('app_id').nullable(),
  transactionId: bigint('transaction_id').nullable(),
  paymentId: bigint('payment_id').nullable(),
  amount: bigint('amount'),
  currency: exact('currency', 3),
  decidedBy: words('decided_by', 191).nullable(),
  decidedAt: realTime('decided_at').nullable(),
  note: words('note', 500).nullable(),
})
export type Approval = Row<typeof approvals>

/** Whether the approval is new: false if the same refund waits already. */
export async function insertApproval(tx: Tx, row: Omit<Approval, 'id'>): Promise<boolean> {
  return insertedNew('approvals_open_key', tx.insert(approvals, row))
}

export async function findOpenApproval(db: Queries, openKey: string): Promise<Approval | null> {
  return db.one(approvals, 'WHERE open_key = ?', [openKey])
}

/** Throws `not_found`. */
export async function getApproval(db: Queries, approvalId: number): Promise<Approval> {
  return found(await db.one(approvals, 'WHERE id = ?', [approvalId]), `approval ${approvalId}`)
}

export async function lockApproval(tx: Tx, approvalId: number): Promise<Approval | null> {
  return tx.one(approvals, 'WHERE id = ? FOR UPDATE', [approvalId])
}

/** The newest 200 requests, the open ones first. */
export async function listApprovals(db: Queries): Promise<Approval[]> {
  return db.all(approvals, "ORDER BY status <> 'open', id DESC LIMIT 200")
}

/** Ends an approval that is open. */
export async function closeApproval(
  tx: Tx,
  approvalId: number,
  ending: Pick<Approval, 'decidedBy' | 'decidedAt' | 'note'> & { readonly status: Exclude<ApprovalStatus, 'open'> },
): Promise<void> {
  await tx.update(approvals, { id: approvalId, status: 'open' }, { ...ending, openKey: null })
}
