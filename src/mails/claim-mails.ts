import type { Context } from '#context.ts'
import { inTransaction, type Tx } from '#commands/transaction.ts'
import { databaseNow } from '#db/database-now.ts'
import { releaseBeforeHandOver, type Claim } from './claims/store.ts'
import type { MailKind } from './mail-kinds.ts'
import type { ClaimedMail, MailQueue } from './mail-queue.ts'

/** Mails claimed in one transaction: few enough to leave well before their claims expire. */
const BATCH_SIZE = 20
/** When only this many are left, the next batch is claimed in the background. */
const REFILL_AT = 10

/**
 * Claims the due mails of a queue shortly before they are sent, until the sweep should stop. At its end it releases what it has claimed
 * and not yielded.
 */
export async function* claimMails<Due>(
  ctx: Context,
  queue: MailQueue<Due>,
  shouldStop: () => boolean,
): AsyncGenerator<ClaimedMail<Due>> {
  const batches = claimBatches(queue)
  const ready: ClaimedMail<Due>[] = []
  let ahead: Promise<IteratorResult<ClaimedMail<Due>[]>> | null = null
  try {
    while (!shouldStop()) {
      if (ready.length <= REFILL_AT && !ahead) {
        ahead = batches.next()
        // What fails in the background is thrown where it is awaited.
        ahead.catch(() => undefined)
      }
      const mail = ready.shift()
      if (mail) yield mail
      else {
        const batch = await ahead
        if (!batch || batch.done) return
        ready.push(...batch.value)
        ahead = null
      }
    }
  } finally {
    const batch = await ahead?.catch(() => null)
    if (batch && !batch.done) ready.push(...batch.value)
    await batches.return(undefined)
    if (ready.length > 0)
      await inTransaction(ctx, async (tx) => {
        for (const { claim } of ready) await releaseUntried(tx, queue.kind, claim)
      })
  }
}

async function* claimBatches<Due>(queue: MailQueue<Due>): AsyncGenerator<ClaimedMail<Due>[]> {
  let mails: Due[] = []
  for await (const mail of queue.due) {
    mails.push(mail)
    if (mails.length < BATCH_SIZE) continue
    yield await queue.claim(mails)
    mails = []
  }
  if (mails.length > 0) yield await queue.claim(mails)
}

/** Releases a claim whose mail was not tried, so that it is due again. */
export async function releaseUntried(tx: Tx, kind: MailKind, claim: Claim): Promise<void> {
  if (claim.failures === 0) await kind.unclaim(tx, claim)
  else await releaseBeforeHandOver(tx, claim, { status: 'failed', retryAt: await databaseNow(tx.ctx, tx) })
}
