import type { App } from '#apps/store.ts'
import type { OperatorNote } from '#commands/operator-note.ts'
import type { Tx } from '#commands/transaction.ts'
import { keptOf } from '#payments/balance.ts'
import { listRefundsOfTransaction, type Refund } from '#payments/store.ts'
import { addMs, MINUTE_MS } from '#shared/time.ts'
import { changeTransaction } from './change-transaction.ts'
import type { Transaction } from './store.ts'

/** The first look-up of a refund comes this soon; the gaps grow after it. */
const FIRST_LOOKUP_MS = 5 * MINUTE_MS

export type RefundState = Pick<Refund, 'status' | 'reference' | 'nextLookupAt' | 'endedAt'>

/** A refund that is made now, without its state. */
export function newRefund(
  { now }: Pick<Tx, 'now'>,
  of: Pick<Refund, 'appId' | 'paymentId' | 'amount'>,
): Omit<Refund, 'id' | keyof RefundState> {
  return { ...of, failure: null, amountUsed: 0, flagReason: null, actor: null, note: null, attempts: 0, createdAt: now }
}

/** The state of a refund that the provider is to make. */
export function pendingNow({ now }: Pick<Tx, 'now'>): RefundState {
  return { status: 'pending', reference: null, nextLookupAt: addMs(now, FIRST_LOOKUP_MS), endedAt: null }
}

/** The state of a refund that ends now. */
export function endedNow({ now }: Pick<Tx, 'now'>, status: 'succeeded' | 'failed'): Omit<RefundState, 'reference'> {
  return { status, nextLookupAt: null, endedAt: now }
}

/**
 * Ends a transaction as refunded once nothing of it is kept and every refund has succeeded. A purchase that a promotion paid in full stays
 * completed: the money was not for it.
 */
export async function endIfRefunded(
  tx: Tx,
  app: App,
  transaction: Transaction,
  operatorNote: OperatorNote,
): Promise<Transaction> {
  if (keptOf(transaction) !== 0 || transaction.status === 'refunded' || transaction.amount === 0) return transaction
  const made = await listRefundsOfTransaction(tx, transaction.id)
  if (made.length === 0 || made.some(({ status }) => status === 'pending')) return transaction
  return changeTransaction(tx, app, transaction, { status: 'refunded' }, operatorNote)
}
