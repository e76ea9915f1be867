import type { Context } from '#context.ts'
import { inTransaction } from '#commands/transaction.ts'
import { databaseNow } from '#db/database-now.ts'
import { MailError, openMailer, type Mailer } from '#mail/send.ts'
import { messageOf } from '#shared/errors.ts'
import { HOUR_MS, MINUTE_MS, SECOND_MS, addMs } from '#shared/time.ts'
import { listDueReceipts, updateReceipt, type Receipt } from '#transactions/store.ts'
import { composeReceipt } from './compose-receipt.ts'

const BATCH = 100
/** A sweep that has a receipt for longer has died, and another may take it up. */
const LEASE_MS = 2 * MINUTE_MS
const LONGEST_PAUSE_MS = HOUR_MS
/** A refund at a provider takes so long at least. */
const REFUND_PAUSE_MS = 10 * MINUTE_MS
/** So often is a mail tried that the mail server refuses. */
const MOST_FAILURES = 30

/**
 * Sends the receipts that are due. Each is claimed, made, and marked as handed over before its first byte leaves, as reminders are: one
 * that a sweep died at before the mark is sent by the next, one after it by nobody.
 */
export async function sendDueReceipts(ctx: Context, { signal }: { readonly signal?: AbortSignal } = {}): Promise<void> {
  const mailer = openMailer(ctx.config, ctx.log)
  if (!mailer) return
  try {
    for (;;) {
      const batch = await listDueReceipts(ctx.db, await databaseNow(ctx, ctx.db), BATCH)
      for (const receipt of batch) {
        if (signal?.aborted || (await sendOne(ctx, mailer, receipt)) === 'away') return
      }
      if (batch.length < BATCH) return
    }
  } finally {
    mailer.close()
  }
}

async function sendOne(ctx: Context, mailer: Mailer, due: Receipt): Promise<'done' | 'away'> {
  const claimed = await claim(ctx, due)
  if (!claimed) return 'done'
  const change = (from: Receipt, changes: Partial<Receipt>): Promise<boolean> =>
    inTransaction(ctx, (tx) => updateReceipt(tx, from, changes))
  const mail = await composeReceipt(ctx, claimed)
  const now = await databaseNow(ctx, ctx.db)
  if (mail === 'drop') {
    await change(claimed, { status: 'dropped' })
    return 'done'
  }
  if (mail === 'wait') {
    await change(claimed, { nextTryAt: addMs(now, REFUND_PAUSE_MS) })
    return 'done'
  }
  try {
    await mailer.send(mail, {
      beforeHandOver: async () => {
        if (!(await change(claimed, { status: 'handed_over' }))) throw new Error('another sweep has taken this receipt')
      },
    })
  } catch (error) {
    return fail(ctx, claimed, error)
  }
  await change(
    { ...claimed, status: 'handed_over' },
    { status: 'sent', sentAt: await databaseNow(ctx, ctx.db), lastError: null },
  )
  return 'done'
}

async function claim(ctx: Context, due: Receipt): Promise<Receipt | null> {
  return inTransaction(ctx, async (tx) => {
    const nextTryAt = addMs(await databaseNow(ctx, tx), LEASE_MS)
    return (await updateReceipt(tx, due, { nextTryAt })) ? { ...due, nextTryAt } : null
  })
}

async function fail(ctx: Context, claimed: Receipt, error: unknown): Promise<'done' | 'away'> {
  const fault = error instanceof MailError ? error.fault : 'refused'
  const lastError = messageOf(error).slice(0, 500)
  ctx.log.warn(
    { receiptId: claimed.id, appId: claimed.appId, fault, reason: lastError },
    'a receipt was not confirmed as sent',
  )
  const handedOver = { ...claimed, status: 'handed_over' } as const
  await inTransaction(ctx, async (tx) => {
    if (fault === 'unknown') return updateReceipt(tx, handedOver, { lastError })
    const failures = claimed.failures + 1
    const isOver = fault === 'no_such_address' || failures > MOST_FAILURES
    const pause = Math.min(LONGEST_PAUSE_MS, 30 * SECOND_MS * 2 ** Math.min(failures, 10))
    const changes = {
      status: isOver ? 'dropped' : 'due',
      failures: fault === 'away' ? claimed.failures : failures,
      nextTryAt: addMs(await databaseNow(ctx, tx), fault === 'away' ? MINUTE_MS : pause),
      lastError,
    } as const
    // Surely not handed over, whether the mark was set or not.
    return (await updateReceipt(tx, claimed, changes)) || updateReceipt(tx, handedOver, changes)
  })
  return fault === 'away' ? 'away' : 'done'
}
