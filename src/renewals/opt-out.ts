import { z } from 'zod'
import { appNow } from '#apps/app-time.ts'
import { getApp, type App } from '#apps/store.ts'
import { command, nothing } from '#commands/command.ts'
import { getSubscription } from '#subscriptions/store.ts'
import { getRenewable } from './get-renewable.ts'
import { setRemindersStopped } from './store.ts'

/**
 * Stops the mails of the subscription behind a renewal token permanently: once this returns, no mail is handed over. Repeating it changes
 * nothing. Throws `not_found`, and `checkout_expired` for a lifetime subscription, which gets no mails.
 */
export const optOut = command({
  name: 'subscription.opt-out',
  input: nothing,
  isRepeatable: true,
  async run(tx, _input, { renewalToken }: { readonly renewalToken: string }) {
    const { id, appId } = await getRenewable(tx, renewalToken)
    const app = await getApp(tx, appId)
    if (await setRemindersStopped(tx, id, appNow(app, tx.now))) await tx.audit({ appId, subject: `subscription ${id}` })
  },
})

/** Stops or resumes the mails of a subscription for an operator; returns whether that changed anything. Throws `not_found`. */
export const setReminders = command({
  name: 'subscription.reminders',
  input: z.strictObject({ reminders: z.enum(['on', 'off']) }),
  async run(tx, { reminders }, { app, externalRef }: { readonly app: App; readonly externalRef: string }) {
    const { id } = await getSubscription(tx, app.id, externalRef)
    const isChange = await setRemindersStopped(tx, id, reminders === 'on' ? null : appNow(app, tx.now))
    if (isChange)
      await tx.audit({
        action: `subscription.reminders-${reminders}`,
        appId: app.id,
        subject: `subscription ${id}`,
        before: { reminders: reminders === 'on' ? 'off' : 'on' },
        after: { reminders },
      })
    return isChange
  },
})
