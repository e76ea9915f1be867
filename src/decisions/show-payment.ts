import { listMailsOfPayment } from '#bank-mail/store.ts'
import { listAuditEntries } from '#commands/store.ts'
import type { Context } from '#context.ts'
import { presentAllocation, presentPayment, presentRefund } from '#payments/present.ts'
import { findPayment, listAllocationsOfPayment, listRefundsOfPayment } from '#payments/store.ts'
import { found } from '#shared/errors.ts'
import { formatTimestamp } from '#shared/time.ts'

/** All that is known of a payment: what it was booked for and by whom, what was refunded, and which bank mails reported it. */
export interface ShownPayment {
  readonly payment: ReturnType<typeof presentPayment>
  readonly allocations: readonly ReturnType<typeof presentAllocation>[]
  readonly refunds: readonly ReturnType<typeof presentRefund>[]
  readonly bankMails: readonly number[]
  readonly decisions: readonly {
    readonly at: string
    readonly actor: string
    readonly action: string
    readonly note: string | null
  }[]
}

/** Throws `not_found`. */
export async function showPayment(ctx: Context, paymentId: number): Promise<ShownPayment> {
  const payment = found(await findPayment(ctx.db, paymentId), `payment ${paymentId}`)
  const entries = await listAuditEntries(ctx.db, { subject: `payment ${paymentId}`, limit: 100 })
  return {
    payment: presentPayment(payment),
    allocations: (await listAllocationsOfPayment(ctx.db, paymentId)).map(presentAllocation),
    refunds: (await listRefundsOfPayment(ctx.db, paymentId)).map(presentRefund),
    bankMails: (await listMailsOfPayment(ctx.db, paymentId)).map(({ id }) => id),
    decisions: entries
      .reverse()
      .map(({ at, actor, action, reason }) => ({ at: formatTimestamp(at), actor, action, note: reason })),
  }
}
