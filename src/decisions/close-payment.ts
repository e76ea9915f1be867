import { z } from 'zod'
import { closeReviewsOfPayment } from '#bank-mail/store.ts'
import { command } from '#commands/command.ts'
import { noteField } from '#commands/operator-note.ts'
import { presentPayment } from '#payments/present.ts'
import { lockPayment, updatePayment, type Payment } from '#payments/store.ts'
import { AppError, found } from '#shared/errors.ts'
import { formatUtc } from '#shared/time.ts'
import { integer } from '#shared/validate.ts'

const ClosePaymentInput = z.strictObject({
  payment_id: integer(1),
  note: noteField,
})

/**
 * Removes the remaining money of a payment, and its bank mails, from the list of waiting money, because an operator decided that it needs
 * no action. It can still be moved or refunded. Throws `not_found`, and `invalid_request` if nothing is left or it was closed before.
 */
export const closePayment = command({
  name: 'payment.close',
  input: ClosePaymentInput,
  async run(tx, { payment_id: paymentId, note }): Promise<Payment> {
    const payment = found(await lockPayment(tx, paymentId), `payment ${paymentId}`)
    requireClosable(payment)
    const after = { ...payment, closedAt: tx.now }
    await updatePayment(tx, paymentId, { closedAt: tx.now })
    await closeReviewsOfPayment(tx, paymentId)
    await tx.audit({
      appId: payment.appId,
      subject: `payment ${paymentId}`,
      before: presentPayment(payment),
      after: presentPayment(after),
      reason: note,
    })
    return after
  },
})

function requireClosable({ id, amountLeft, closedAt }: Payment): void {
  if (closedAt) throw new AppError('invalid_request', `payment ${id} was closed at ${formatUtc(closedAt)}`)
  if (amountLeft === 0)
    throw new AppError(
      'invalid_request',
      `payment ${id} has no money left to close; if its transaction is flagged, run transaction resolve <id> --action dismiss`,
    )
}
