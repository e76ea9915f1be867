import { z } from 'zod'
import { endReviewsOfPayment } from '#bank-mail/store.ts'
import type { Caller } from '#commands/caller.ts'
import { command } from '#commands/command.ts'
import { perform } from '#commands/perform.ts'
import type { Context } from '#context.ts'
import { presentPayment } from '#payments/present.ts'
import { lockPayment, updatePayment, type Refund } from '#payments/store.ts'
import { isRefundedByProvider, sendRefunds } from '#providers/engine/refunds.ts'
import { AppError, invalidField, notFound } from '#shared/errors.ts'
import { integer, text } from '#shared/validate.ts'
import { decisionOf } from '#transactions/decision-of.ts'
import { orderRefundOfPayment } from '#transactions/refund-money.ts'

const RefundPaymentInput = z.strictObject({
  payment_id: integer(1),
  /** In the smallest unit; required if the payment's amount is unknown. Absent: all that is unallocated. */
  amount: integer(1).optional(),
  /** Of a manual transfer. */
  reference: text(191).optional(),
  /** Why; kept in the audit log. */
  note: text(500),
})

/**
 * Refunds money that is booked for no transaction: through the provider, or recorded with the reference of a manual transfer. Throws
 * `not_found`, `invalid_request` if nothing is left, and `provider_error` as `resolveTransaction` does.
 */
export async function refundPayment(ctx: Context, caller: Caller, input: unknown): Promise<Refund> {
  const ordered = await perform(ctx, caller, orderRefund, input, null)
  if (ordered.status !== 'pending' || ctx.rehearsal) return ordered
  const [sent] = await sendRefunds(ctx, [ordered], false)
  return sent ?? ordered
}

const orderRefund = command({
  name: 'payment.refund',
  input: RefundPaymentInput,
  async run(tx, input): Promise<Refund> {
    const { payment_id: paymentId, note, reference = null } = input
    const payment = await lockPayment(tx, paymentId)
    if (!payment) throw notFound(`payment ${paymentId}`)
    if (payment.amount === null && input.amount === undefined)
      throw invalidField('amount', 'is required: the amount of this payment is unknown')
    const known = payment.amount ?? input.amount ?? 0
    const left = payment.amountLeft ?? known
    if (left === 0)
      throw new AppError(
        'invalid_request',
        `nothing of payment ${paymentId} is left: money of a transaction is refunded by transaction resolve <id> --action refund`,
      )
    if (payment.amount === null) await updatePayment(tx, paymentId, { amount: known, amountLeft: known })
    const amount = input.amount ?? left
    const order = { amount, isSent: isRefundedByProvider, reference, decision: decisionOf(tx, note) }
    const refund = await orderRefundOfPayment(tx, { ...payment, amount: known, amountLeft: left }, order)
    if (amount === left) await endReviewsOfPayment(tx, paymentId)
    await tx.audit({
      appId: payment.appId,
      subject: `payment ${paymentId}`,
      before: presentPayment(payment),
      after: { amount_refunded: amount, status: refund.status, ...(reference === null ? {} : { reference }) },
      reason: note,
    })
    return refund
  },
})
