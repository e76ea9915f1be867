import { appNow } from '#apps/app-time.ts'
import type { Tx } from '#commands/transaction.ts'
import { formatIsoOffset, formatTimestamp } from '#shared/time.ts'
import { presentSubject } from '#subscriptions/present.ts'
import { emitEvent } from '#webhooks/emit-event.ts'
import type { DueReminder } from './compose-reminder.ts'
import { markSent, type Claim } from './store.ts'

/** Records that the mail was sent and tells the app so, once per stage and period, never with the link (specification 6). */
export async function recordSent(tx: Tx, due: Omit<DueReminder, 'price'>, claim: Claim): Promise<boolean> {
  if (!(await markSent(tx, claim))) return false
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
  return true
}
