import { appNow } from '#apps/app-time.ts'
import type { NotifiedApp } from '#apps/store.ts'
import type { OperatorNote } from '#commands/operator-note.ts'
import type { Tx } from '#commands/transaction.ts'
import type { Balance } from '#payments/balance.ts'
import { emitEvent } from '#webhooks/emit-event.ts'
import { queueReceipts } from './queue-receipts.ts'
import { insertChange, updateLockedTransaction, type ChangeKind, type FlagReason, type Transaction } from './store.ts'

export type TransactionChanges = Partial<Omit<Transaction, 'id' | 'appId' | 'flaggedAt' | 'updatedAt'>>

/**
 * Changes a transaction that was read under the end user's lock. Records what its timeline must show: each flag that is raised or cleared,
 * a completion that was decided or flagged, and a full refund. Returns the changed transaction.
 */
export async function changeTransaction(
  tx: Tx,
  app: NotifiedApp,
  before: Transaction,
  changes: TransactionChanges,
  operatorNote: OperatorNote | null = null,
): Promise<Transaction> {
  const now = appNow(app, tx.now)
  const after: Transaction = { ...before, ...changes, updatedAt: now }
  const isReflagged = after.flagReason !== before.flagReason
  const flaggedAt = isReflagged ? (after.flagReason === null ? null : now) : before.flaggedAt
  const { id, status } = before
  const write = { ...changes, updatedAt: now, ...(isReflagged ? { flaggedAt } : {}) }
  await updateLockedTransaction(tx, id, status, write)
  for (const { kind, flagReason } of historyOf(before, after, operatorNote)) {
    await insertChange(tx, {
      appId: app.id,
      transactionId: id,
      kind,
      flagReason,
      actor: operatorNote?.actor ?? null,
      note: operatorNote?.note ?? null,
    })
  }
  if (isReflagged && after.flagReason !== null) await announceFlag(tx, app, after, after.flagReason)
  if (app.pageSettings?.receipts) await queueReceipts(tx, app, before, after)
  return { ...after, flaggedAt }
}

/**
 * Saves the balance of a transaction from which money was refunded at its provider, or moved to another transaction. If nothing is left,
 * that resolves the flag. A step, as `changeTransaction`.
 */
export async function saveReducedBalance(
  tx: Tx,
  app: NotifiedApp,
  before: Transaction,
  balance: Balance,
  resolution: 'refunded' | 'moved',
  operatorNote: OperatorNote | null = null,
): Promise<Transaction> {
  const isCleared = before.flagReason !== null && balance.amountLeft === 0
  const cleared = { flagReason: null, resolution, resolvedAt: appNow(app, tx.now) }
  return changeTransaction(tx, app, before, { ...balance, ...(isCleared ? cleared : {}) }, operatorNote)
}

async function announceFlag(tx: Tx, app: NotifiedApp, flagged: Transaction, flag_reason: FlagReason): Promise<void> {
  const { id, externalRef, planRef, amount, amountReceived, currency } = flagged
  const data = {
    transaction_id: id,
    external_ref: externalRef,
    plan_ref: planRef,
    amount,
    amount_received: amountReceived,
    currency,
    flag_reason,
  }
  await emitEvent(tx, { app, type: 'transaction.flagged', data })
}

interface HistoryEntry {
  readonly kind: ChangeKind
  readonly flagReason: FlagReason | null
}

function historyOf(before: Transaction, after: Transaction, operatorNote: OperatorNote | null): HistoryEntry[] {
  const entries: HistoryEntry[] = []
  const isReflagged = before.flagReason !== after.flagReason
  if (isReflagged && before.flagReason) entries.push({ kind: 'unflagged', flagReason: before.flagReason })
  // The timeline shows a plain completion by its events.
  const isPlain = after.status === 'completed' && after.flagReason === null && operatorNote === null
  if (before.status !== after.status && !isPlain && (after.status === 'completed' || after.status === 'refunded'))
    entries.push({ kind: after.status, flagReason: null })
  if (isReflagged && after.flagReason) entries.push({ kind: 'flagged', flagReason: after.flagReason })
  return entries
}
