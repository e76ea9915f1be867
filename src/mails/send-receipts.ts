import { getApp, type App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { inTransaction } from '#commands/transaction.ts'
import { databaseNow } from '#db/database-now.ts'
import { MAIL_CONNECTIONS, MailError, openMailer, type Mailer } from '#mail/send.ts'
import { messageOf } from '#shared/errors.ts'
import { HOUR_MS, MINUTE_MS, SECOND_MS, addMs, formatDay } from '#shared/time.ts'
import { listDueReceipts, updateReceipt, type Receipt } from '#transactions/store.ts'
import { composeReceipt } from '#mails/compose-receipt.ts'
import { DailyLimitReached, findAppsAtLimit, receiptLimit } from '#mails/daily-limit.ts'
import { countMails, decrementDailyCount } from './store.ts'

const BATCH_SIZE = 100
/** A receipt that was claimed this long ago belongs to a sweep that died; another sweep may claim it. */
const LEASE_MS = 2 * MINUTE_MS
/** A sweep ends after this long, so that reminders are not held up; the next sweep continues. */
const LONGEST_SWEEP_MS = 10 * MINUTE_MS
const FIRST_PAUSE_MS = 30 * SECOND_MS
const LONGEST_PAUSE_MS = HOUR_MS
/** How long a receipt waits for its refund to succeed at the provider before it is looked at again. */
const REFUND_PAUSE_MS = 10 * MINUTE_MS
/** A receipt that failed more often is dropped. */
const MAX_FAILURES = 30

type Outcome = 'done' | 'unreachable'

/**
 * Sends the receipts that are due. Each is claimed, composed, and marked as handed over before its first byte leaves, as reminders
 * are: if a sweep dies before the mark, the next one sends the receipt; if it dies after the mark, nobody sends it again. The mark
 * counts it towards the daily limit of a sandbox app. Beyond the limit receipts are dropped: kept, they would only make a loop last.
 */
export async function sendDueReceipts(ctx: Context, { signal }: { readonly signal?: AbortSignal } = {}): Promise<void> {
  const mailer = openMailer(ctx.config, ctx.log)
  if (!mailer) return
  const unreachable = new AbortController()
  const signals = [signal, AbortSignal.timeout(LONGEST_SWEEP_MS), unreachable.signal]
  const stop = AbortSignal.any(signals.filter((each) => each !== undefined))
  try {
    for (;;) {
      const batch = await listDueReceipts(ctx.db, await databaseNow(ctx, ctx.db), BATCH_SIZE)
      const appsAtLimit = await findAppsAtLimit(ctx)
      const queue = batch.values()
      const sendNext = async (): Promise<void> => {
        for (const receipt of queue) {
          if (stop.aborted) return
          if ((await sendOne(ctx, mailer, receipt, appsAtLimit)) === 'unreachable') unreachable.abort()
        }
      }
      const senders = await Promise.allSettled(Array.from({ length: MAIL_CONNECTIONS }, sendNext))
      for (const sender of senders) if (sender.status === 'rejected') throw sender.reason
      if (stop.aborted || batch.length < BATCH_SIZE) return
    }
  } finally {
    mailer.close()
  }
}

async function sendOne(ctx: Context, mailer: Mailer, due: Receipt, appsAtLimit: ReadonlySet<number>): Promise<Outcome> {
  const claimed = await claim(ctx, due)
  if (!claimed) return 'done'
  const change = (from: Receipt, changes: Partial<Receipt>): Promise<boolean> =>
    inTransaction(ctx, (tx) => updateReceipt(tx, from, changes))
  const drop = (lastError: string | null): Promise<boolean> => change(claimed, { status: 'dropped', lastError })
  let countedOn: string | null = null
  try {
    const app = await getApp(ctx.db, claimed.appId)
    if (receiptLimit(ctx.config, app) !== null && appsAtLimit.has(app.id)) throw new DailyLimitReached()
    const mail = await composeReceipt(ctx, app, claimed)
    if (mail === 'drop') {
      await drop(claimed.lastError)
      return 'done'
    }
    if (mail === 'wait') {
      await change(claimed, { nextTryAt: addMs(await databaseNow(ctx, ctx.db), REFUND_PAUSE_MS) })
      return 'done'
    }
    await mailer.send(mail, {
      beforeHandOver: async () => {
        countedOn = await markHandedOver(ctx, app, claimed)
      },
    })
  } catch (error) {
    if (isOverLimit(error)) {
      await drop('the sandbox app has reached its daily limit of mails')
      return 'done'
    }
    return recordFailure(ctx, claimed, countedOn, error)
  }
  await change(
    { ...claimed, status: 'handed_over' },
    { status: 'sent', sentAt: await databaseNow(ctx, ctx.db), lastError: null },
  )
  return 'done'
}

/** Returns the day on which the receipt was counted. Throws `DailyLimitReached`. */
async function markHandedOver(ctx: Context, app: App, claimed: Receipt): Promise<string | null> {
  const limit = receiptLimit(ctx.config, app)
  return inTransaction(ctx, async (tx) => {
    if (!(await updateReceipt(tx, claimed, { status: 'handed_over' })))
      throw new Error('another sweep claimed this receipt')
    if (limit === null) return null
    const day = formatDay(await databaseNow(ctx, tx))
    if (!(await countMails(tx, app.id, day, 1, limit))) throw new DailyLimitReached()
    return day
  })
}

/** The mailer wraps what stopped a hand-over. */
function isOverLimit(error: unknown): boolean {
  return error instanceof DailyLimitReached || (error instanceof MailError && isOverLimit(error.cause))
}

async function claim(ctx: Context, due: Receipt): Promise<Receipt | null> {
  return inTransaction(ctx, async (tx) => {
    const nextTryAt = addMs(await databaseNow(ctx, tx), LEASE_MS)
    return (await updateReceipt(tx, due, { nextTryAt })) ? { ...due, nextTryAt } : null
  })
}

async function recordFailure(
  ctx: Context,
  claimed: Receipt,
  countedOn: string | null,
  error: unknown,
): Promise<Outcome> {
  const failure = error instanceof MailError ? error.failure : 'refused'
  const lastError = messageOf(error).slice(0, 500)
  ctx.log.warn(
    { receiptId: claimed.id, appId: claimed.appId, fault: failure, reason: lastError },
    'a receipt was not confirmed as sent',
  )
  const handedOver = { ...claimed, status: 'handed_over' } as const
  await inTransaction(ctx, async (tx) => {
    if (failure === 'unknown') {
      await updateReceipt(tx, handedOver, { lastError })
      return
    }
    const failures = claimed.failures + 1
    const isOver = failure === 'no_such_address' || failures > MAX_FAILURES
    const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(failures, 10))
    const changes = {
      status: isOver ? 'dropped' : 'due',
      failures: failure === 'unreachable' ? claimed.failures : failures,
      nextTryAt: addMs(await databaseNow(ctx, tx), failure === 'unreachable' ? MINUTE_MS : pauseMs),
      lastError,
    } as const
    // The mail did not leave, whether or not the receipt was marked.
    if (await updateReceipt(tx, claimed, changes)) return
    if (await updateReceipt(tx, handedOver, changes)) await decrementDailyCount(tx, { ...claimed, countedOn })
  })
  return failure === 'unreachable' ? 'unreachable' : 'done'
}
