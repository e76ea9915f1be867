import { z } from 'zod'
import type { Context } from '#context.ts'
import { command } from '#commands/command.ts'
import { noteField } from '#commands/operator-note.ts'
import { updatePayment } from '#payments/store.ts'
import { invalidField } from '#shared/errors.ts'
import { englishMoney } from '#shared/money.ts'
import { integer } from '#shared/validate.ts'
import { requireWaitingMail, reviewedState } from './require-waiting-mail.ts'
import { closeReviewsOfPayment, markBankMailClosed, type BankMail } from './store.ts'

const CloseBankMailInput = z.strictObject({
  id: integer(1),
  note: noteField,
})

/**
 * Closes a mail that needs no action: it leaves the list of waiting mails and can no longer be matched. Throws `not_found`, and
 * `invalid_request` if it does not wait (R197).
 */
export const closeBankMail = command({
  name: 'bank-mail.close',
  input: CloseBankMailInput,
  async run(tx, { id, note }): Promise<void> {
    const mail = await requireWaitingMail(tx, id)
    if (!(await markBankMailClosed(tx, id))) throw invalidField('id', 'was matched or closed meanwhile')
    if (mail.paymentId !== null) {
      // Closes its money and other mails about the same money, too.
      await updatePayment(tx, mail.paymentId, { closedAt: tx.now })
      await closeReviewsOfPayment(tx, mail.paymentId)
    }
    await tx.audit({
      subject: `bank mail ${id}`,
      before: reviewedState(mail),
      after: { closed: true },
      reason: note,
    })
  },
})

/** What `closeBankMail` would do, in sentences for the operator. Throws the same errors. */
export async function previewClose(
  ctx: Context,
  mailId: number,
): Promise<{ readonly appId: number | null; readonly effects: readonly string[] }> {
  const mail = await requireWaitingMail(ctx.db, mailId)
  const effect = `bank mail ${mail.id} leaves the list; its ${moneyWords(mail)} can no longer be matched`
  return { appId: mail.appId, effects: [effect] }
}

function moneyWords({ amount }: BankMail): string {
  return amount === null ? 'money, if any,' : englishMoney(amount, 'VND')
}
