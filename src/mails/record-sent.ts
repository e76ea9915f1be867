import { appNow } from '#apps/app-time.ts'
import { command, nothing } from '#commands/command.ts'
import type { Tx } from '#commands/transaction.ts'
import { formatIsoOffset, formatTimestamp } from '#shared/time.ts'
import { presentSubject } from '#subscriptions/present.ts'
import { emitEvents, type Emission } from '#webhooks/emit-event.ts'
import type { DueReminder } from '#mails/compose-reminder.ts'
import { markSent, type Claim } from './claims/store.ts'
import { reminders } from './store.ts'

/** What the app's event says about a mail. */
export type SentReminder = Omit<DueReminder, 'price' | 'promotion'>

/** A mail that the mail server accepted, and the claim under which it was sent. */
export interface SentMail {
  readonly due: SentReminder
  readonly claim: Claim
}

/** Performed by the job that sent the mails, once the mail server has accepted them. */
export const remindersSent = command({
  name: 'reminder.sent',
  input: nothing,
  // A claim is finalized once.
  isRepeatable: true,
  run: (tx, _input, { mails }: { readonly mails: readonly SentMail[] }) => recordSent(tx, mails),
})

/**
 * Records that mails were sent and emits their events, once per stage and period and never with the link (R172). One mail
 * that an operator has resolved in the meantime stays as it is; among several it is an error, and nothing is recorded.
 */
export async function recordSent(tx: Tx, mails: readonly SentMail[]): Promise<void> {
  const claims = mails.map(({ claim }) => claim)
  const recorded = await markSent(tx, reminders, claims, tx.now)
  if (recorded === mails.length) await emitEvents(tx, mails.map(emissionIn(tx)))
  else if (mails.length > 1) throw new Error('an operator has resolved one of the mails')
}

const emissionIn =
  (tx: Tx) =>
  ({ due }: SentMail): Emission<'subscription.renewal_reminder_sent'> => {
    const { app, subscription, plan, customer, periodEnd, stage } = due
    return {
      app,
      type: 'subscription.renewal_reminder_sent',
      data: {
        ...presentSubject({ subscription, plan, customer }),
        reminder_day: stage,
        period_end: formatTimestamp(periodEnd),
        in_trial: subscription.inTrial,
        sent_at: formatIsoOffset(appNow(app, tx.now)),
      },
      subject: { externalRef: subscription.externalRef, transactionId: null },
    }
  }
