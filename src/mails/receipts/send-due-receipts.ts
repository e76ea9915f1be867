import { listAppsByIds, type App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { inTransaction, type Tx } from '#commands/transaction.ts'
import { databaseNow } from '#db/database-now.ts'
import { readPages } from '#db/read-pages.ts'
import { MINUTE_MS, addMs, formatDay, type RealTime } from '#shared/time.ts'
import { receipts, type Receipt } from '#transactions/receipts/store.ts'
import { claimAsRead, markSent, releaseBeforeHandOver, type Claim } from '#mails/claims/store.ts'
import { composeReceipt } from './compose-receipt.ts'
import { receiptLimit } from '#mails/daily-limit.ts'
import { listDueReceipts, STILL_TRUE } from './store.ts'
import { reserveMails } from '#mails/limits/store.ts'
import { RECEIPTS } from '#mails/mail-kinds.ts'
import type { ClaimedMail, MailQueue } from '#mails/mail-queue.ts'
import { sendMails, withMailSweep, type SweepOptions } from '#mails/send-mails.ts'

const PAGE_SIZE = 100
/** How long a receipt waits for its refund to succeed at the provider before it is looked at again. */
const REFUND_PAUSE_MS = 10 * MINUTE_MS
const OVER_LIMIT = 'the sandbox app has reached its daily limit of mails'

interface DueReceipt {
  readonly receipt: Receipt
  readonly app: App
}

/**
 * Sends the receipts that are due; those that failed before come last. Those of a sandbox app count towards its daily limit. Beyond the
 * limit they are dropped: otherwise a program that pays in a loop would cause mails for days.
 */
export async function sendDueReceipts(ctx: Context, options: Pick<SweepOptions, 'signal'> = {}): Promise<void> {
  await withMailSweep(ctx, RECEIPTS, options, (sweep) => sendMails(ctx, sweep, receiptQueue(ctx)))
}

function receiptQueue(ctx: Context): MailQueue<DueReceipt> {
  return {
    kind: RECEIPTS,
    due: findDueReceipts(ctx),
    claim: (mails) => inTransaction(ctx, (tx) => claimReceipts(tx, mails)),
    compose: ({ app, receipt }) => composeReceipt(ctx, app, receipt),
    // A payer whose rest has just arrived is not asked for it.
    stillDue: () => STILL_TRUE,
    async recordSent({ claim }) {
      await inTransaction(ctx, (tx) => markSent(tx, claim, tx.now))
    },
    async stop(tx, claim, { isFinal }) {
      const retryAt = addMs(await databaseNow(ctx, tx), REFUND_PAUSE_MS)
      await releaseBeforeHandOver(tx, claim, isFinal ? { status: 'dropped' } : { status: 'failed', retryAt })
    },
    // Receipts have no metric.
    recordOutcome: () => undefined,
  }
}

async function* findDueReceipts(ctx: Context): AsyncGenerator<DueReceipt> {
  for (const status of ['due', 'failed'] as const) {
    const pages = readPages<Receipt>(PAGE_SIZE, async (last, limit) =>
      listDueReceipts(ctx.db, status, await databaseNow(ctx, ctx.db), last && { at: last.retryAt, id: last.id }, limit),
    )
    for await (const page of pages) yield* await withApps(ctx, page)
  }
}

async function withApps(ctx: Context, page: readonly Receipt[]): Promise<DueReceipt[]> {
  const appIds = page.map(({ appId }) => appId)
  const apps = await listAppsByIds(ctx.db, appIds)
  return page.flatMap((receipt) => {
    const app = apps.get(receipt.appId)
    return app ? { receipt, app } : []
  })
}

async function claimReceipts(tx: Tx, mails: readonly DueReceipt[]): Promise<ClaimedMail<DueReceipt>[]> {
  const now = await databaseNow(tx.ctx, tx)
  const claimed: ClaimedMail<DueReceipt>[] = []
  for (const due of mails) {
    const claim = await claimWithin(tx, due, receiptLimit(tx.ctx.config, due.app), now)
    if (claim) claimed.push({ due, claim })
  }
  return claimed
}

/** Null if another sweep has the receipt, and if the app has reached its limit, which drops it. */
async function claimWithin(
  tx: Tx,
  { receipt }: DueReceipt,
  limit: number | null,
  now: RealTime,
): Promise<Claim | null> {
  const claim = await claimAsRead(tx, receipts, receipt, now)
  if (!claim || limit === null) return claim
  const countedOn = formatDay(now)
  if ((await reserveMails(tx, claim.appId, countedOn, 1, limit)) === 0) {
    await releaseBeforeHandOver(tx, claim, { status: 'dropped', lastError: OVER_LIMIT })
    return null
  }
  await tx.update(receipts, { id: claim.id }, { countedOn })
  return { ...claim, countedOn }
}
