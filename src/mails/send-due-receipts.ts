import { getApp } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { inTransaction, type Tx } from '#commands/transaction.ts'
import { databaseNow } from '#db/database-now.ts'
import { MINUTE_MS, addMs, formatDay } from '#shared/time.ts'
import { receipts, type Receipt } from '#transactions/store.ts'
import { markSent, recordFailure, release } from './claims.ts'
import { composeReceipt } from './compose-receipt.ts'
import { findAppsAtLimit, receiptLimit } from './daily-limit.ts'
import { listDueReceipts } from './due/store.ts'
import { countMails } from './limits/store.ts'
import { leaseFrom, RECEIPTS } from './mail-kinds.ts'
import { Stopped, type MailQueue } from './mail-queue.ts'
import { sendMails, withMailSweep, type SweepOptions } from './send-mails.ts'
import type { Claim } from './store.ts'

const PAGE_SIZE = 100
/** How long a receipt waits for its refund to succeed at the provider before it is looked at again. */
const REFUND_PAUSE_MS = 10 * MINUTE_MS

/** A receipt that only this sweep may send. */
interface ClaimedReceipt {
  readonly receipt: Receipt
  /** The hand-over adds its mark, and counts it. */
  claim: Claim
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

  return {
    due: due(),
    claim: (mails) =>
      inTransaction(ctx, async (tx) => {
        const nextTryAt = leaseFrom(await databaseNow(ctx, tx))
        const claimed: ClaimedReceipt[] = []
        for (const due of mails) {
          const receipt = { ...due, nextTryAt }
          if (await changeDue(tx, due, { nextTryAt })) claimed.push({ receipt, claim: RECEIPTS.claimOf(receipt) })
        }
        return claimed
      }),
    release: async (tx, { claim }) => release(tx, RECEIPTS, claim, RECEIPTS.waiting(await databaseNow(ctx, tx))),
    async compose({ receipt }) {
      const app = await getApp(ctx.db, receipt.appId)
      if (receiptLimit(ctx.config, app) !== null && appsAtLimit.has(app.id)) throw overLimit()
      return composeReceipt(ctx, app, receipt)
    },
    handOver: (mail) => markHandedOver(ctx, mail),
    async recordSent(mails) {
      const claims = mails.map(({ claim }) => claim)
      await inTransaction(ctx, async (tx) => markSent(tx, RECEIPTS, claims, await databaseNow(ctx, tx)))
    },
    async stop({ receipt, claim }, { until, reason }) {
      await inTransaction(ctx, async (tx) => {
        const changes =
          until === 'later'
            ? RECEIPTS.waiting(addMs(await databaseNow(ctx, tx), REFUND_PAUSE_MS))
            : ({ status: 'dropped', lastError: reason ?? receipt.lastError } as const)
        await release(tx, RECEIPTS, claim, changes)
      })
    },
    async fail({ receipt, claim }, failure, reason) {
      const { id: receiptId, appId } = receipt
      ctx.log.warn({ receiptId, appId, fault: failure, reason }, 'a receipt was not confirmed as sent')
      await inTransaction(ctx, (tx) => recordFailure(tx, RECEIPTS, claim, { failure, reason, to: null }))
    },
    // Receipts have no metric.
    count: () => undefined,
  }
}

/** Changes a receipt that is still due as it was read; false if another sweep has it. */
async function changeDue(tx: Tx, { id, status, nextTryAt }: Receipt, changes: Partial<Receipt>): Promise<boolean> {
  return (await tx.update(receipts, { id, status, nextTryAt }, changes)) === 1
}

const overLimit = (): Stopped => new Stopped('permanently', 'the sandbox app has reached its daily limit of mails')

async function markHandedOver(ctx: Context, mail: ClaimedReceipt): Promise<void> {
  const { receipt, claim } = mail
  const limit = receiptLimit(ctx.config, await getApp(ctx.db, receipt.appId))
  const now = await databaseNow(ctx, ctx.db)
  const nextTryAt = leaseFrom(now)
  const day = formatDay(now)
  // Known before the COMMIT, whose answer may be lost.
  mail.claim = { ...claim, marks: [...claim.marks, nextTryAt] }
  await inTransaction(ctx, async (tx) => {
    if (!(await changeDue(tx, receipt, { status: 'handed_over', nextTryAt })))
      throw new Error('another sweep claimed this receipt')
    if (limit !== null && !(await countMails(tx, receipt.appId, day, 1, limit))) throw overLimit()
  })
  if (limit !== null) mail.claim = { ...mail.claim, countedOn: day }
}
