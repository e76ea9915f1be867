import { appNow } from '#apps/app-time.ts'
import { getApp, type App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { recordAudit } from '#commands/audit.ts'
import { inTransaction } from '#commands/transaction.ts'
import { getSubscription } from '#subscriptions/store.ts'
import { getRenewable } from './get-renewable.ts'
import { setRemindersStopped } from './store.ts'

/**
 * Stops the mails of the subscription behind a renewal token, for good: no mail of it is handed over once this has returned. Doing it
 * twice changes nothing. Throws `not_found`; `checkout_expired` for a lifetime subscription, which gets no mails.
 */
export async function optOut(ctx: Context, renewalToken: string): Promise<void> {
  await inTransaction(ctx, async (tx) => {
    const subscription = await getRenewable(tx, renewalToken)
    const app = await getApp(tx, subscription.appId)
    await setRemindersStopped(tx, subscription.id, appNow(app, tx.now))
  })
}

/** An operator stops or resumes the mails of a subscription; true where that was a change. Throws `not_found`. */
export async function setReminders(
  ctx: Context,
  actor: string,
  app: App,
  externalRef: string,
  wanted: 'on' | 'off',
): Promise<boolean> {
  return inTransaction(ctx, async (tx) => {
    const { id } = await getSubscription(tx, app.id, externalRef)
    const isChange = await setRemindersStopped(tx, id, wanted === 'on' ? null : appNow(app, tx.now))
    if (isChange) {
      await recordAudit(tx, {
        actor,
        action: `subscription.reminders-${wanted}`,
        appId: app.id,
        subject: `subscription ${id}`,
      })
    }
    return isChange
  })
}
