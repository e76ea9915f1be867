import { appNow } from '#apps/app-time.ts'
import { command, nothing } from '#commands/command.ts'
import type { Tx } from '#commands/transaction.ts'
import { formatIsoOffset, formatTimestamp } from '#shared/time.ts'
import { presentSubject } from '#subscriptions/present.ts'
import type { SubscriptionView } from '#subscriptions/store.ts'
import { emitEvent } from '#webhooks/emit-event.ts'
import type { DueReminder } from './compose-reminder.ts'
import { markSent } from '#mails/claims/store.ts'
import type { ClaimedMail } from '#mails/mail-queue.ts'

/** What the app's event says about a mail. */
export type SentReminder = SubscriptionView & Pick<DueReminder, 'app' | 'periodEnd' | 'stage'>

/** A reminder that the mail server accepted, and the claim under which it was sent. */
type AcceptedReminder = ClaimedMail<SentReminder>

/** Performed by the job that sent the mail, once the mail server has accepted it. */
export const reminderSent = command({
  name: 'reminder.sent',
  input: nothing,
  // A claim is finalized once.
  isRepeatable: true,
  run: (tx, _input, { mail }: { readonly mail: AcceptedReminder }) => recordSent(tx, mail),
})

/**
 * Records that a mail was sent and emits its event, once per stage and period and never with the link (R172). A mail that an operator has
 * settled meanwhile stays as it is.
 */
export async function recordSent(tx: Tx, { due, claim }: AcceptedReminder): Promise<void> {
  if (!(await markSent(tx, claim, tx.now))) return
  const { app, subscription, periodEnd, stage } = due
  const data = {
    ...presentSubject(due),
    reminder_day: stage,
    period_end: formatTimestamp(periodEnd),
    in_trial: subscription.inTrial,
    sent_at: formatIsoOffset(appNow(app, tx.now)),
  }
  await emitEvent(tx, { app, type: 'subscription.renewal_reminder_sent', data })
}
