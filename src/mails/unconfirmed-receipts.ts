import { z } from 'zod'
import { command } from '#commands/command.ts'
import type { Context } from '#context.ts'
import { databaseNow } from '#db/database-now.ts'
import { listPage, presentPage, type Page, type PageRequest } from '#http/page-of.ts'
import { AppError, notFound } from '#shared/errors.ts'
import { MINUTE_MS, addMs, formatTimestamp, type RealTime } from '#shared/time.ts'
import type { Receipt, ReceiptKind } from '#transactions/store.ts'
import {
  countUnconfirmedReceipts as countRows,
  findReceipt,
  listUnconfirmedReceipts as listRows,
  updateReceipt,
  type ReceiptOfTransaction,
} from './store.ts'

/** How long after the lease of its sweep a receipt may still be confirmed. */
const CONFIRMATION_MS = MINUTE_MS

/** A receipt that may have been sent: the connection or the daemon died between the hand-over and the answer. */
export interface UnconfirmedReceipt {
  readonly receipt_id: number
  readonly app_id: number
  readonly transaction_id: number
  readonly external_ref: string
  readonly kind: ReceiptKind
  /** In the smallest unit. */
  readonly amount: number
  readonly currency: string
  /** When the change that it is about was made. */
  readonly created_at: string
  readonly last_error: string | null
}

/** A page of them, newest first. The mail server's log shows what became of each; `settleReceipt` records it. */
export async function listUnconfirmedReceipts(ctx: Context, page: unknown = {}): Promise<Page<UnconfirmedReceipt>> {
  const before = await confirmedBy(ctx)
  const list = (request: PageRequest) => listRows(ctx.db, before, request)
  return presentPage(await listPage(page, list, ({ nextTryAt }) => nextTryAt), present)
}

/** How many there are. */
export async function countUnconfirmedReceipts(ctx: Context): Promise<number> {
  return countRows(ctx.db, await confirmedBy(ctx))
}

/** Whether the receipt was handed over so long before `now`, by the database's clock, that no answer will come. */
function isUnconfirmed({ status, nextTryAt }: Receipt, now: RealTime): boolean {
  return status === 'handed_over' && nextTryAt <= addMs(now, -CONFIRMATION_MS)
}

/** `due`, `handed_over`, `unconfirmed`, `sent` or `dropped`. `now` is by the database's clock. */
export function receiptState(receipt: Receipt, now: RealTime): Receipt['status'] | 'unconfirmed' {
  return isUnconfirmed(receipt, now) ? 'unconfirmed' : receipt.status
}

async function confirmedBy(ctx: Context): Promise<RealTime> {
  return addMs(await databaseNow(ctx, ctx.db), -CONFIRMATION_MS)
}

function present(row: ReceiptOfTransaction): UnconfirmedReceipt {
  return {
    receipt_id: row.id,
    app_id: row.appId,
    transaction_id: row.transactionId,
    external_ref: row.externalRef,
    kind: row.kind,
    amount: row.amount,
    currency: row.currency,
    created_at: formatTimestamp(row.createdAt),
    last_error: row.lastError,
  }
}

/**
 * An operator has looked whether an unconfirmed receipt was sent: `sent` records it, `not_sent` lets the next sweep send it. Throws
 * `not_found`, and `invalid_request` for a receipt that is not unconfirmed, or not yet: it may be on its way.
 */
export const settleReceipt = command({
  name: 'receipt.settle',
  input: z.strictObject({ outcome: z.enum(['sent', 'not_sent']) }),
  async run(tx, { outcome }, { receiptId }: { readonly receiptId: number }) {
    const receipt = await findReceipt(tx, receiptId)
    if (!receipt) throw notFound('receipt')
    const now = await databaseNow(tx.ctx, tx)
    const changes =
      outcome === 'sent'
        ? ({ status: 'sent', sentAt: now, lastError: null } as const)
        : ({ status: 'due', nextTryAt: now, lastError: 'not sent, an operator says' } as const)
    if (!isUnconfirmed(receipt, now) || !(await updateReceipt(tx, receipt, changes)))
      throw new AppError('invalid_request', 'this receipt is not unconfirmed')
    await tx.audit({ appId: receipt.appId, subject: `receipt ${receiptId}`, after: { outcome } })
  },
})
