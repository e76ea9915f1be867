import type { Context } from '#context.ts'
import { databaseNow } from '#db/database-now.ts'
import { readPages } from '#db/read-pages.ts'
import { inTransaction } from '#commands/transaction.ts'
import {
  claimRefundLookup,
  findPayment,
  findRefund,
  listDueRefunds,
  updateRefundIn,
  type Payment,
  type Refund,
} from '#payments/store.ts'
import { AppError } from '#shared/errors.ts'
import { addMs, HOUR_MS, MINUTE_MS, type RealTime } from '#shared/time.ts'
import type { RefundWay } from '#transactions/order-refunds.ts'
import { recordRefundAnswer } from '#transactions/record-refund-answer.ts'
import type { RefundCall } from '#providers/provider.ts'
import { providerOfCode } from '#providers/providers.ts'

const BATCH = 100
const MIN_PAUSE_MS = 5 * MINUTE_MS
const MAX_PAUSE_MS = 6 * HOUR_MS

export function refundWayOf(code: string): RefundWay {
  const provider = providerOfCode(code)
  if (provider?.refunds) return 'provider'
  return provider?.isSandboxOnly ? 'none' : 'transfer'
}

export interface SentRefund {
  readonly refund: Refund
  /** Why the outcome is unknown; null if it is known. */
  readonly message: string | null
}

interface SendOptions {
  /** Whether the provider may have been asked before. */
  readonly isRepeated: boolean
}

/**
 * Asks the provider to make a pending refund, or for its status, and records the answer. Without an answer the refund stays pending, and
 * `reconcileRefunds` continues. Safe to repeat.
 */
async function sendRefund(ctx: Context, refundId: number, options: SendOptions): Promise<SentRefund> {
  const refund = await findRefund(ctx.db, refundId)
  const payment = refund && (await findPayment(ctx.db, refund.paymentId))
  if (!refund || !payment) throw new Error(`refund ${refundId} does not exist`)
  if (refund.status !== 'pending') return { refund, message: null }
  const call = await askProvider(ctx, payment, refund, options)
  if (call.status === 'unknown') {
    const { message, isAnswered } = call
    ctx.log.warn({ provider: payment.provider, refundId, message }, 'the outcome of a refund is not known yet')
    if (isAnswered)
      await inTransaction(ctx, (tx) => updateRefundIn(tx, refundId, ['pending'], { attempts: refund.attempts + 1 }))
    return { refund, message }
  }
  const recorded = await inTransaction(ctx, (tx) => recordRefundAnswer(tx, refundId, call))
  return { refund: recorded, message: null }
}

/**
 * Sends pending refunds, also after one of them fails. Returns the changed refunds. Throws `provider_error`, which names the refunds that
 * were refused and those whose outcome is unknown.
 */
export async function sendRefunds(ctx: Context, ordered: readonly Refund[], options: SendOptions): Promise<Refund[]> {
  const sent: Refund[] = []
  const failures: string[] = []
  for (const { id } of ordered) {
    const { refund, message } = await sendRefund(ctx, id, options)
    sent.push(refund)
    if (message !== null)
      failures.push(`${message}: refund ${id} stays pending, and billing-cli reconcile tries it again`)
    else if (refund.status === 'failed')
      failures.push(`refund ${id} was refused (${refund.failure ?? 'no reason given'})`)
  }
  if (failures.length > 0) throw new AppError('provider_error', failures.join('; '))
  return sent
}

async function askProvider(ctx: Context, payment: Payment, refund: Refund, options: SendOptions): Promise<RefundCall> {
  const refunds = providerOfCode(payment.provider)?.refunds
  if (!refunds) throw new Error(`${payment.provider} makes no refunds`)
  return refund.reference === null
    ? refunds.make(ctx, payment, refund, options)
    : refunds.pollStatus(ctx, payment, refund)
}

export interface ReconcileRefundsOptions {
  readonly signal?: AbortSignal
  readonly appId?: number
  /** Look up every pending refund, due or not. */
  readonly all?: boolean
}

/** Sends or polls pending refunds at their providers. Returns how many ended. */
export async function reconcileRefunds(ctx: Context, options: ReconcileRefundsOptions = {}): Promise<number> {
  let ended = 0
  const pages = readPages<Refund>(BATCH, async (after, limit) => {
    const dueAt = options.all ? null : await databaseNow(ctx, ctx.db)
    return listDueRefunds(ctx.db, { dueAt, appId: options.appId ?? null, after, limit })
  })
  for await (const page of pages)
    for (const refund of page) {
      if (options.signal?.aborted) return ended
      if (await reconcileRefund(ctx, refund)) ended += 1
    }
  return ended
}

/** Returns whether the refund ended. A failure delays this refund only. */
async function reconcileRefund(ctx: Context, refund: Refund): Promise<boolean> {
  const isOurs = await inTransaction(ctx, async (tx) =>
    claimRefundLookup(tx, refund, nextRefundLookupAt(refund, await databaseNow(ctx, tx))),
  )
  if (!isOurs) return false
  try {
    return (await sendRefund(ctx, refund.id, { isRepeated: true })).refund.status !== 'pending'
  } catch (error) {
    ctx.log.warn({ error, refundId: refund.id }, 'a refund could not be looked up')
    return false
  }
}

/** The longer a refund is pending, the less often it is polled: a bank may take days. */
function nextRefundLookupAt({ createdAt }: Refund, now: RealTime): RealTime {
  const age = now.getTime() - createdAt.getTime()
  return addMs(now, Math.min(MAX_PAUSE_MS, Math.max(MIN_PAUSE_MS, age)))
}
