import { z } from 'zod'
import { getApp } from '#apps/store.ts'
import { command, type Command } from '#commands/command.ts'
import type { Tx } from '#commands/transaction.ts'
import { findCustomer } from '#customers/store.ts'
import { databaseNow } from '#db/database-now.ts'
import { findPlan } from '#plans/store.ts'
import { AppError, notFound } from '#shared/errors.ts'
import { findSubscriptionById } from '#subscriptions/store.ts'
import type { Receipt } from '#transactions/store.ts'
import { mailState } from './mail-state.ts'
import { recordSent, type SentReminder } from './record-sent.ts'
import { claimOf, lockReceipt, lockReminder, releaseClaim, updateReceipt, type Reminder } from './store.ts'

const NOT_SENT = 'an operator recorded that it was not sent'

/** `sent` marks the reminder as sent and emits its event; `not_sent` lets the next sweep send it, if its stage still applies. */
export const settleReminder = settling('reminder', lockReminder, async (tx, reminder, isSent) => {
  const claim = claimOf(reminder)
  if (isSent) await recordSent(tx, [{ due: await subjectOf(tx, reminder), claim }])
  else await releaseClaim(tx, claim, NOT_SENT)
})

/** `sent` marks the receipt as sent; `not_sent` lets the next sweep send it. */
export const settleReceipt = settling('receipt', lockReceipt, async (tx, receipt, isSent) => {
  const now = await databaseNow(tx.ctx, tx)
  const sent = { status: 'sent', sentAt: now, lastError: null } as const
  await updateReceipt(tx, receipt, isSent ? sent : { status: 'due', nextTryAt: now, lastError: NOT_SENT })
})

/**
 * Records what an operator found out about an unconfirmed mail. Throws `not_found`, and `invalid_request` for a mail that is not
 * unconfirmed, or not yet: it may be on its way.
 */
function settling<Mail extends Reminder | Receipt>(
  noun: 'reminder' | 'receipt',
  lock: (tx: Tx, mailId: number) => Promise<Mail | null>,
  record: (tx: Tx, mail: Mail, isSent: boolean) => Promise<void>,
): Command<{ readonly mailId: number }, void> {
  return command({
    name: `${noun}.settle`,
    input: z.strictObject({ outcome: z.enum(['sent', 'not_sent']) }),
    async run(tx, { outcome }, { mailId }: { readonly mailId: number }) {
      const mail = await lock(tx, mailId)
      if (!mail) throw notFound(noun)
      if (mailState(mail, await databaseNow(tx.ctx, tx)) !== 'unconfirmed')
        throw new AppError('invalid_request', `this ${noun} is not unconfirmed`)
      await record(tx, mail, outcome === 'sent')
      await tx.audit({ appId: mail.appId, subject: `${noun} ${mailId}`, after: { outcome } })
    },
  })
}

async function subjectOf(tx: Tx, { appId, subscriptionId, periodEnd, stage }: Reminder): Promise<SentReminder> {
  const app = await getApp(tx, appId)
  const subscription = await findSubscriptionById(tx, subscriptionId)
  const plan = subscription && (await findPlan(tx, app.id, subscription.planId))
  const customer = subscription?.customerId ? await findCustomer(tx, app.id, subscription.customerId) : null
  if (!subscription || !plan || !customer) throw notFound('subscription')
  return { app, subscription, plan, customer, periodEnd, stage }
}
