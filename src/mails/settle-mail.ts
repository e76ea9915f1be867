import { z } from 'zod'
import { getApp } from '#apps/store.ts'
import { command, type Command } from '#commands/command.ts'
import type { Tx } from '#commands/transaction.ts'
import { databaseNow } from '#db/database-now.ts'
import { AppError, found, notFound } from '#shared/errors.ts'
import { findSubscriptionById, viewSubscription } from '#subscriptions/store.ts'
import type { MailRow } from '#mail/mail-columns.ts'
import { claimOf, mailState, markSent, releaseAfterFailure, type Claim } from './claims/store.ts'
import { RECEIPTS, REMINDERS, type MailKind } from './mail-kinds.ts'
import { recordSent, type SentReminder } from './reminders/record-sent.ts'
import type { Reminder } from './reminders/store.ts'

const NOT_SENT = 'an operator recorded that it was not sent'

/** `sent` marks the reminder as sent and emits its event; `not_sent` lets the next sweep send it, if its stage still applies. */
export const settleReminder = settling(REMINDERS, async (tx, reminder, claim) =>
  recordSent(tx, { due: await subjectOf(tx, reminder), claim }),
)

/** `sent` marks the receipt as sent; `not_sent` lets the next sweep send it. */
export const settleReceipt = settling(RECEIPTS, async (tx, _receipt, claim) => {
  await markSent(tx, claim, tx.now)
})

/**
 * Records what an operator found out about an unconfirmed mail. Throws `not_found`, and `invalid_request` for a mail that is not
 * unconfirmed, or not yet: it may be on its way.
 */
function settling<Mail extends MailRow>(
  kind: MailKind<Mail>,
  recordAsSent: (tx: Tx, mail: Mail, claim: Claim) => Promise<void>,
): Command<{ readonly mailId: number }, void> {
  const { noun, table } = kind
  return command({
    name: `${noun}.settle`,
    input: z.strictObject({ outcome: z.enum(['sent', 'not_sent']) }),
    async run(tx, { outcome }, { mailId }: { readonly mailId: number }) {
      // Locked until the commit, so that of two decisions about it one is the first.
      const mail = found(await tx.one(table, 'WHERE id = ? FOR UPDATE', [mailId]), noun)
      const now = await databaseNow(tx.ctx, tx)
      if (mailState(mail, now) !== 'unconfirmed')
        throw new AppError('invalid_request', `this ${noun} is not unconfirmed`)
      const claim = claimOf(table, mail)
      if (outcome === 'sent') await recordAsSent(tx, mail, claim)
      else await releaseAfterFailure(tx, claim, { status: 'failed', retryAt: now, lastError: NOT_SENT })
      await tx.audit({ appId: mail.appId, subject: `${noun} ${mailId}`, after: { outcome } })
    },
  })
}

async function subjectOf(tx: Tx, { appId, subscriptionId, periodEnd, stage }: Reminder): Promise<SentReminder> {
  const subscription = await findSubscriptionById(tx, subscriptionId)
  const view = subscription && (await viewSubscription(tx, subscription))
  if (!view?.customer) throw notFound('subscription')
  return { ...view, app: await getApp(tx, appId), periodEnd, stage }
}
