import type { Context } from '#context.ts'
import { inTransaction } from '#commands/transaction.ts'
import type { ClaimedMail, MailQueue } from './mail-queue.ts'

/** Mails claimed in one transaction: few enough to leave well before their claims expire. */
const BATCH_SIZE = 20
/** When only this many are left, the next batch is claimed in the background. */
const REFILL_AT = 10

/** Claims due mails shortly before they are sent. */
export interface MailClaimer<Due> {
  /** The next claimed mail; null when none is left, or the sweep should stop. */
  next(): Promise<ClaimedMail<Due> | null>
  /** Releases what was claimed and not taken. */
  releaseAll(): Promise<void>
}

/** `shouldStop`: whether to take no further mail. */
export function openMailClaimer<Due>(ctx: Context, queue: MailQueue<Due>, shouldStop: () => boolean): MailClaimer<Due> {
  const ready: ClaimedMail<Due>[] = []
  let claiming: Promise<void> | null = null
  let isOver = false

  const claimMore = async (): Promise<void> => {
    const mails: Due[] = []
    while (mails.length < BATCH_SIZE && !isOver) {
      const next = await queue.due.next()
      if (next.done) isOver = true
      else mails.push(next.value)
    }
    if (mails.length > 0) ready.push(...(await queue.claim(mails)))
  }

  /** A failure is thrown by the `next` that waits for it. */
  const startClaiming = (): Promise<void> => {
    claiming ??= claimMore().then(() => {
      claiming = null
    })
    claiming.catch(() => undefined)
    return claiming
  }

  return {
    async next() {
      while (ready.length === 0 && !(isOver && !claiming) && !shouldStop()) await startClaiming()
      if (shouldStop()) return null
      const mail = ready.shift() ?? null
      if (ready.length <= REFILL_AT && !isOver) void startClaiming()
      return mail
    },
    async releaseAll() {
      await claiming?.catch(() => undefined)
      const left = ready.splice(0)
      if (left.length === 0) return
      await inTransaction(ctx, async (tx) => {
        for (const { claim } of left) await queue.releaseUntried(tx, claim)
      })
    },
  }
}
