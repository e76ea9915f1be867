import { z } from 'zod'
import { appNow } from '#apps/app-time.ts'
import type { App } from '#apps/store.ts'
import { command } from '#commands/command.ts'
import { noteField } from '#commands/operator-note.ts'
import { AppError } from '#shared/errors.ts'
import { formatTimestamp, formatUtc, formatTimestampOrNull, wholeSeconds } from '#shared/time.ts'
import type { Emission } from '#webhooks/emit-event.ts'
import { unpaidLine } from './unpaid-line.ts'
import { effectiveStatus } from './lifecycle.ts'
import { expiredData } from './present.ts'
import { recordChange } from './record-change.ts'
import { getPlanAndCustomer, getSubscription, lockExistingEndUser, type SubscriptionView } from './store.ts'

const EndSubscriptionInput = z.strictObject({ note: noteField })

/**
 * Ends a subscription now for an operator, because its purchase was refunded, disputed or a mistake (R114). A lifetime subscription can be
 * ended, too. Afterwards, a new checkout is possible. Throws `not_found`, and `invalid_request` if it has already ended.
 */
export const endSubscription = command({
  name: 'subscription.end',
  input: EndSubscriptionInput,
  async run(tx, { note }, { app, externalRef }: { readonly app: App; readonly externalRef: string }) {
    await lockExistingEndUser(tx, app.id, externalRef)
    const current = await getSubscription(tx, app.id, externalRef)
    const now = wholeSeconds(appNow(app, tx.now))
    const { currentPeriodEnd, periodStart } = current
    if (currentPeriodEnd && effectiveStatus(current, now) === 'expired')
      throw new AppError('invalid_request', `this subscription ended at ${formatUtc(currentPeriodEnd)}`)
    const start = periodStart < now ? periodStart : now
    const set = { period: { start, end: now, anchorDay: now.getUTCDate() } }
    const line = await unpaidLine(tx, app, 'ended', current)
    const announce = (view: SubscriptionView): Emission[] => [
      { app, type: 'subscription.expired', data: expiredData(view, now, current.inTrial) },
    ]
    const view = await recordChange(tx, app, {
      before: current,
      set,
      line,
      planAndCustomer: await getPlanAndCustomer(tx, current),
      announce,
    })
    await tx.audit({
      appId: app.id,
      subject: `subscription ${current.id}`,
      before: { current_period_end: formatTimestampOrNull(currentPeriodEnd) },
      after: { current_period_end: formatTimestamp(now) },
      reason: note,
    })
    return view
  },
})
