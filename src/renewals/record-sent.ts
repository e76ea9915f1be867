import { appNow } from '#apps/app-time.ts'
import { command, nothing } from '#commands/command.ts'
import type { Tx } from '#commands/transaction.ts'
import { formatIsoOffset, formatTimestamp } from '#shared/time.ts'
import { presentSubject } from '#subscriptions/present.ts'
import { emitEvent } from '#webhooks/emit-event.ts'
import type { DueReminder } from './compose-reminder.ts'
import { markSent, type Claim } from './store.ts'

/** What the app is sent about a mail. */
export type SentReminder = Omit<DueReminder, 'price'>

/** The mail server took the mail of a claim: performed by the job that sent it. */
export const reminderSent = command({
  name: 'reminder.sent',
  input: nothing,
  // The claim is ended once.
  isRepeatable: true,
  run: (tx, _input, { due, claim }: { readonly due: SentReminder; readonly claim: Claim }) =>
    recordSent(tx, due, claim),
})

/** Records that the mail was sent and tells the app so, once per stage and period, never with the link (specification 6). */
export async function recordSent(tx: Tx, due: SentReminder, claim: Claim): Promise<void> {
  if (!(await markSent(tx, claim))) return
  const { app, subscription, plan, customer, periodEnd, stage } = due
  const data = {
    ...presentSubject({ subscription, plan, customer }),
    reminder_day: stage,
    period_end: formatTimestamp(periodEnd),
    in_trial: subscription.inTrial,
    sent_at: formatIsoOffset(appNow(app, tx.now)),
  }
  const subject = { externalRef: subscription.externalRef, transactionId: null }
  await emitEvent(tx, app, 'subscription.renewal_reminder_sent', data, subject)
}
