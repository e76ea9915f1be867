import type { Context } from '#context.ts'
import { inTransaction } from '#commands/transaction.ts'
import type { ClaimedMail, MailQueue } from './mail-queue.ts'

/** Mails claimed in one transaction: few enough to leave well before their claims expire. */
const BATCH_SIZE = 20
/** When only this many are left, the next batch is claimed in the background. */
const REFILL_AT = 10

/** Claims due mails shortly before they are sent. */
export class MailClaimer<Due> {
  readonly #ctx: Context
  readonly #queue: MailQueue<Due>
  readonly #shouldStop: () => boolean
  readonly #ready: ClaimedMail<Due>[] = []
  #claiming: Promise<void> | null = null
  /** Whether every due mail was read. */
  #isOver = false

  /** `shouldStop`: whether to take no further mail. */
  constructor(ctx: Context, queue: MailQueue<Due>, shouldStop: () => boolean) {
    this.#ctx = ctx
    this.#queue = queue
    this.#shouldStop = shouldStop
  }

  /** The next claimed mail; null when none is left, or the sweep should stop. */
  async next(): Promise<ClaimedMail<Due> | null> {
    while (this.#ready.length === 0 && !(this.#isOver && !this.#claiming) && !this.#shouldStop())
      await this.#claimBatch()
    if (this.#shouldStop()) return null
    const mail = this.#ready.shift() ?? null
    if (this.#ready.length <= REFILL_AT && !this.#isOver) void this.#claimBatch()
    return mail
  }

  /** Releases what was claimed and not taken. */
  async releaseAll(): Promise<void> {
    await this.#claiming?.catch(() => undefined)
    const left = this.#ready.splice(0)
    if (left.length === 0) return
    await inTransaction(this.#ctx, async (tx) => {
      for (const { claim } of left) await this.#queue.releaseUntried(tx, claim)
    })
  }

  /** Claims one batch at a time. A failure is thrown by the `next` that waits for it. */
  #claimBatch(): Promise<void> {
    this.#claiming ??= this.#readAndClaim().then(() => {
      this.#claiming = null
    })
    this.#claiming.catch(() => undefined)
    return this.#claiming
  }

  async #readAndClaim(): Promise<void> {
    const mails: Due[] = []
    while (mails.length < BATCH_SIZE && !this.#isOver) {
      const next = await this.#queue.due.next()
      if (next.done) this.#isOver = true
      else mails.push(next.value)
    }
    if (mails.length > 0) this.#ready.push(...(await this.#queue.claim(mails)))
  }
}
