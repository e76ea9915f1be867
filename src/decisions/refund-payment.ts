import { z } from 'zod'
import { refuseAboveLimit, type Grant, type RefundRequest } from '#approvals/refund-limit.ts'
import { orStoreApproval } from '#approvals/request-approval.ts'
import { endReviewsOfPayment } from '#bank-mail/store.ts'
import type { Caller } from '#commands/caller.ts'
import { command } from '#commands/command.ts'
import { noteField, noteOf } from '#commands/operator-note.ts'
import { perform } from '#commands/perform.ts'
import type { Tx } from '#commands/transaction.ts'
import type { Context } from '#context.ts'
import { presentPayment } from '#payments/present.ts'
import { isUnanswered } from '#payments/refund-state.ts'
import {
  findPayment,
  listRefundedShares,
  listRefundsOfPayment,
  lockPayment,
  updatePayment,
  type Payment,
  type Refund,
} from '#payments/store.ts'
import { refundWayOf, sendRefunds } from '#providers/engine/refunds.ts'
import { AppError, found, invalidField } from '#shared/errors.ts'
import { englishMoney } from '#shared/money.ts'
import { integer, text, validate } from '#shared/validate.ts'
import { orderRefundOfPayment } from '#transactions/order-refunds.ts'

const RefundPaymentInput = z.strictObject({
  payment_id: integer(1),
  /** In the smallest unit; required if the payment's amount is unknown. Absent: all that is unallocated. */
  amount: integer(1).nullable().default(null),
  /** Of a manual transfer. */
  reference: text(191).nullable().default(null),
  note: noteField,
})
type RefundPaymentInput = z.infer<typeof RefundPaymentInput>

/**
 * Refunds money that is booked for no transaction: through the provider, or recorded with the reference of a manual transfer. If the
 * provider never answered, the same command sends the refund again (R131). Throws `not_found`, `invalid_request` if nothing is left, and
 * `provider_error` and `forbidden` as `resolveTransaction` does. With `grant` it is made by an approval.
 */
export async function refundPayment(
  ctx: Context,
  caller: Caller,
  input: unknown,
  grant: Grant | null = null,
): Promise<Refund> {
  const unanswered = grant ? null : await findUnanswered(ctx, validate(RefundPaymentInput, input))
  if (unanswered) {
    // No row changes before the provider answers, and a dry run shall not say that nothing would happen.
    const { id, appId: app_id, status } = unanswered
    const change = { before: { status }, after: { status: 'sent again' } }
    ctx.rehearsal?.changes.push({ action: 'payment.refund', app_id, subject: `refund ${id}`, ...change })
    return send(ctx, unanswered, { isRepeated: true })
  }
  const ordered = await orStoreApproval(
    ctx,
    caller,
    () => perform(ctx, caller, orderRefund, input, { grant }),
    (request) => [`${englishMoney(request.amount, request.currency)} of payment ${request.paymentId ?? ''} goes back`],
  )
  return send(ctx, ordered, { isRepeated: false })
}

/** The newest refund that the same command ordered, and to which the provider never answered; null if there is none. */
async function findUnanswered(
  ctx: Context,
  { payment_id: paymentId, amount }: RefundPaymentInput,
): Promise<Refund | null> {
  const payment = await findPayment(ctx.db, paymentId)
  // Without an amount the command asks for what is left: only if nothing is, it can be the same one, and was the last.
  if (!payment || (amount === null && payment.amountLeft !== 0)) return null
  for (const refund of (await listRefundsOfPayment(ctx.db, paymentId)).toReversed()) {
    if (!isUnanswered(refund) || (amount !== null && refund.amount !== amount)) continue
    if ((await listRefundedShares(ctx.db, refund.id)).length === 0) return refund
  }
  return null
}

async function send(ctx: Context, refund: Refund, options: { readonly isRepeated: boolean }): Promise<Refund> {
  if (refund.status !== 'pending' || ctx.rehearsal) return refund
  const [sent] = await sendRefunds(ctx, [refund], options)
  return sent ?? refund
}

const orderRefund = command({
  name: 'payment.refund',
  input: RefundPaymentInput,
  async run(tx, input, { grant }: { readonly grant: Grant | null }): Promise<Refund> {
    const { payment_id: paymentId, note, reference } = input
    const payment = found(await lockPayment(tx, paymentId), `payment ${paymentId}`)
    if (payment.amount === null && input.amount === null)
      throw invalidField('amount', 'is required: the amount of this payment is unknown')
    const known = payment.amount ?? input.amount ?? 0
    const left = payment.amountLeft ?? known
    // With a grant, `refuseAboveLimit` reports that the request is stale.
    if (left === 0 && !grant)
      throw new AppError(
        'invalid_request',
        `nothing of payment ${paymentId} is left: money of a transaction is refunded by transaction resolve <id> --action refund`,
      )
    if (payment.amount === null) await updatePayment(tx, paymentId, { amount: known, amountLeft: known })
    const amount = input.amount ?? left
    const waits = await refuseAboveLimit(tx, tx.caller, await refundRequestOf(tx, payment, input, amount), grant)
    const order = { amount, wayOf: refundWayOf, reference, operatorNote: noteOf(tx, note) }
    const refund = await orderRefundOfPayment(tx, { ...payment, amount: known, amountLeft: left }, order)
    await endReviewsOfPayment(tx, paymentId)
    await tx.audit({
      appId: payment.appId,
      subject: `payment ${paymentId}`,
      before: presentPayment(payment),
      after: {
        amount_refunded: amount,
        status: refund.status,
        ...(waits === null ? {} : { approval: waits }),
        ...(reference === null ? {} : { reference }),
        ...(grant === null ? {} : { approval: grant.approvalId }),
      },
      reason: note,
    })
    return refund
  },
})

async function refundRequestOf(
  tx: Tx,
  payment: Payment,
  { reference, note, amount: given }: RefundPaymentInput,
  amount: number,
): Promise<RefundRequest> {
  const { id: paymentId, appId, currency, amountLeft, closedAt } = payment
  const earlier = (await listRefundsOfPayment(tx, paymentId)).filter(({ status }) => status !== 'failed')
  const refundedBefore = earlier.reduce((sum, refund) => sum + refund.amount, 0)
  return {
    terms: { of: 'payment', id: paymentId, amount: given, reference, note },
    seen: JSON.stringify([payment.amount, amountLeft, closedAt, refundedBefore]),
    appId,
    transactionId: null,
    paymentId,
    amount,
    refundedBefore,
    currency,
  }
}
