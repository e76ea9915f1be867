import { appNow } from '#apps/app-time.ts'
import { command, nothing } from '#commands/command.ts'
import type { Tx } from '#commands/transaction.ts'
import { formatIsoOffset, formatTimestamp } from '#shared/time.ts'
import { presentSubject } from '#subscriptions/present.ts'
import { emitEvents, type Emission } from '#webhooks/emit-event.ts'
import type { DueReminder } from './compose-reminder.ts'
import { markSent, type Claim } from './store.ts'

/** What the app is sent about a mail. */
export type SentReminder = Omit<DueReminder, 'price'>

/** A mail that the mail server took, and the claim under which it was sent. */
export interface SentMail {
  readonly due: SentReminder
  readonly claim: Claim
}

/** The mail server took mails: performed by the job that sent them. */
export const remindersSent = command({
  name: 'reminder.sent',
  input: nothing,
  // Each claim is ended once.
  isRepeatable: true,
  run: (tx, _input, { mails }: { readonly mails: readonly SentMail[] }) => recordSent(tx, mails),
})

/**
 * Records that mails were sent and tells their apps so, once per stage and period, never with the link (specification 6). A mail that
 * an operator has settled meanwhile stays as it is; among others it is an error, and nothing is recorded.
 */
export async function recordSent(tx: Tx, mails: readonly SentMail[]): Promise<void> {
  const recorded = await markSent(
    tx,
    mails.map(({ claim }) => claim),
  )
  if (recorded === mails.length) await emitEvents(tx, mails.map(emissionIn(tx)))
  else if (mails.length > 1) throw new Error('one of the mails was settled meanwhile')
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
