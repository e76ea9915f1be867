import { getApp, type App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { inTransaction, type Tx } from '#commands/transaction.ts'
import { databaseNow } from '#db/database-now.ts'
import type { MailFailure } from '#mail/send.ts'
import { MINUTE_MS, addMs, formatDay } from '#shared/time.ts'
import type { Receipt } from '#transactions/store.ts'
import { composeReceipt } from './compose-receipt.ts'
import { findAppsAtLimit, receiptLimit } from './daily-limit.ts'
import { Stopped, type MailQueue } from './mail-queue.ts'
import { sendMails, withMailSweep, type SweepOptions } from './send-mails.ts'
import {
  countMails,
  decrementDailyCount,
  listDueReceipts,
  pauseAfter,
  RECEIPT_LEASE_MS,
  updateReceipt,
} from './store.ts'

const PAGE_SIZE = 100
/** How long a receipt waits for its refund to succeed at the provider before it is looked at again. */
const REFUND_PAUSE_MS = 10 * MINUTE_MS
/** A receipt that failed more often is dropped. */
const MAX_FAILURES = 30

/** A receipt that only this sweep may send: its `nextTryAt` is the end of the lease. */
interface ClaimedReceipt {
  readonly receipt: Receipt
  /** The receipt as the hand-over stores it; before that the same as `receipt`. */
  marked: Receipt
  /** The UTC day whose daily limit it counts towards, from the hand-over on. */
  countedOn: string | null
}

/**
 * Sends the receipts that are due. The hand-over counts them towards the daily limit of a sandbox app. Beyond the limit receipts are
 * dropped: kept, they would only make a loop last.
 */
export async function sendDueReceipts(ctx: Context, options: Pick<SweepOptions, 'signal'> = {}): Promise<void> {
  await withMailSweep(ctx, options, (sweep) => sendMails(ctx, sweep, receiptQueue(ctx)))
}

/** Receipts have a row from the change on that they report. */
function receiptQueue(ctx: Context): MailQueue<Receipt, ClaimedReceipt> {
  let appsAtLimit: ReadonlySet<number> = new Set()

  async function* due(): AsyncGenerator<Receipt> {
    let page: Receipt[] = []
    do {
      page = await listDueReceipts(ctx.db, await databaseNow(ctx, ctx.db), page.at(-1) ?? null, PAGE_SIZE)
      appsAtLimit = await findAppsAtLimit(ctx)
      yield* page
    } while (page.length === PAGE_SIZE)
  }

  const isLimited = (app: App): boolean => receiptLimit(ctx.config, app) !== null && appsAtLimit.has(app.id)

  return {
    due: due(),
    claim: (mails) =>
      inTransaction(ctx, async (tx) => {
        const nextTryAt = addMs(await databaseNow(ctx, tx), RECEIPT_LEASE_MS)
        const claimed: ClaimedReceipt[] = []
        for (const due of mails) {
          const receipt = { ...due, nextTryAt }
          if (await updateReceipt(tx, due, { nextTryAt })) claimed.push({ receipt, marked: receipt, countedOn: null })
        }
        return claimed
      }),
    async release(tx, { receipt }) {
      await updateReceipt(tx, receipt, { nextTryAt: await databaseNow(ctx, tx) })
    },
    async compose({ receipt }) {
      const app = await getApp(ctx.db, receipt.appId)
      if (isLimited(app)) throw overLimit()
      return composeReceipt(ctx, app, receipt)
    },
    handOver: (mail) => markHandedOver(ctx, mail),
    recordSent: (mails) =>
      inTransaction(ctx, async (tx) => {
        const sent = { status: 'sent', sentAt: await databaseNow(ctx, tx), lastError: null } as const
        for (const { marked } of mails) await updateReceipt(tx, marked, sent)
      }),
    async stop({ receipt }, { until, reason }) {
      await inTransaction(ctx, async (tx) => {
        const changes =
          until === 'later'
            ? { nextTryAt: addMs(await databaseNow(ctx, tx), REFUND_PAUSE_MS) }
            : ({ status: 'dropped', lastError: reason ?? receipt.lastError } as const)
        await updateReceipt(tx, receipt, changes)
      })
    },
    async fail(mail, failure, reason) {
      const { id: receiptId, appId } = mail.receipt
      ctx.log.warn({ receiptId, appId, fault: failure, reason }, 'a receipt was not confirmed as sent')
      await inTransaction(ctx, (tx) => recordFailure(tx, mail, failure, reason))
    },
    // Receipts have no metric.
    count: () => undefined,
  }
}

const overLimit = (): Stopped => new Stopped('permanently', 'the sandbox app has reached its daily limit of mails')

async function markHandedOver(ctx: Context, mail: ClaimedReceipt): Promise<void> {
  const { receipt } = mail
  const limit = receiptLimit(ctx.config, await getApp(ctx.db, receipt.appId))
  const now = await databaseNow(ctx, ctx.db)
  const changes = { status: 'handed_over', nextTryAt: addMs(now, RECEIPT_LEASE_MS) } as const
  // Known before the COMMIT, whose answer may be lost.
  mail.marked = { ...receipt, ...changes }
  const day = formatDay(now)
  await inTransaction(ctx, async (tx) => {
    if (!(await updateReceipt(tx, receipt, changes))) throw new Error('another sweep claimed this receipt')
    if (limit !== null && !(await countMails(tx, receipt.appId, day, 1, limit))) throw overLimit()
  })
  if (limit !== null) mail.countedOn = day
}

async function recordFailure(
  tx: Tx,
  { receipt, marked, countedOn }: ClaimedReceipt,
  failure: MailFailure,
  lastError: string,
): Promise<void> {
  if (failure === 'unknown') {
    await updateReceipt(tx, marked, { lastError })
    return
  }
  const now = await databaseNow(tx.ctx, tx)
  const { failures, retryAt } = pauseAfter(receipt.failures, now)
  const isOver = failure === 'no_such_address' || failures > MAX_FAILURES
  const changes = {
    lastError,
    status: isOver ? 'dropped' : 'due',
    ...(failure === 'unreachable' ? { nextTryAt: addMs(now, MINUTE_MS) } : { failures, nextTryAt: retryAt }),
  } as const
  // The mail did not leave, whether or not the receipt was marked.
  if (await updateReceipt(tx, receipt, changes)) return
  if (await updateReceipt(tx, marked, changes)) await decrementDailyCount(tx, { ...receipt, countedOn })
}
