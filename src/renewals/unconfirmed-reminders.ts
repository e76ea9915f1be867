import { z } from 'zod'
import { getApp } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { findCustomer } from '#customers/store.ts'
import { command } from '#commands/command.ts'
import type { Tx } from '#commands/transaction.ts'
import { databaseNow } from '#db/database-now.ts'
import type { Queries } from '#db/queries.ts'
import { findPlan } from '#plans/store.ts'
import { AppError, notFound } from '#shared/errors.ts'
import { MINUTE_MS, addMs, formatTimestamp } from '#shared/time.ts'
import { findSubscriptionById } from '#subscriptions/store.ts'
import { recordSent, type SentReminder } from './record-sent.ts'
import { claimOf, findReminder, releaseClaim, listUnconfirmed, type Reminder } from './store.ts'

/** A mail that was handed over this long ago will not be confirmed any more. */
const CONFIRMATION_MS = 3 * MINUTE_MS
const MOST_LISTED = 1000

/** A mail that may or may not have left: the connection or the daemon died between the hand-over and the mail server's answer. */
export interface UnconfirmedReminder {
  readonly reminder_id: number
  readonly app_id: number
  readonly external_ref: string
  readonly reminder_day: 3 | 1 | 0
  readonly period_end: string
  readonly handed_over_at: string
  readonly last_error: string | null
}

/** Newest first, at most 1000. An operator finds out from the mail server's log what happened, and records it by `settleReminder`. */
export async function listUnconfirmedReminders(ctx: Context): Promise<UnconfirmedReminder[]> {
  const rows = await listUnconfirmed(ctx.db, addMs(await databaseNow(ctx, ctx.db), -CONFIRMATION_MS), MOST_LISTED)
  return Promise.all(
    rows.map(async (row) => ({
      reminder_id: row.id,
      app_id: row.appId,
      external_ref: await externalRefOf(ctx.db, row.subscriptionId),
      reminder_day: row.stage,
      period_end: formatTimestamp(row.periodEnd),
      handed_over_at: row.handedOverAt ? formatTimestamp(row.handedOverAt) : '',
      last_error: row.lastError,
    })),
  )
}

async function externalRefOf(db: Queries, subscriptionId: number): Promise<string> {
  return (await findSubscriptionById(db, subscriptionId))?.externalRef ?? ''
}

/**
 * Records what an operator found out about an unconfirmed mail. `sent` marks it as sent and emits its event; `not_sent` lets the next sweep
 * send it, if its stage still applies. Throws `not_found`, and `invalid_request` for a mail that is not unconfirmed.
 */
export const settleReminder = command({
  name: 'reminder.settle',
  input: z.strictObject({ outcome: z.enum(['sent', 'not_sent']) }),
  async run(tx, { outcome }, { reminderId }: { readonly reminderId: number }) {
    const reminder = await findReminder(tx, reminderId)
    if (!reminder) throw notFound('reminder')
    if (reminder.status !== 'claimed' || !reminder.handedOverAt) {
      throw new AppError('invalid_request', 'this reminder is not unconfirmed')
    }
    const claim = claimOf(reminder)
    if (outcome === 'not_sent') await releaseClaim(tx, claim, 'an operator recorded that it was not sent')
    else await recordSent(tx, [{ due: await subjectOf(tx, reminder), claim }])
    await tx.audit({ appId: reminder.appId, subject: `reminder ${reminderId}`, after: { outcome } })
  },
})

async function subjectOf(tx: Tx, { appId, subscriptionId, periodEnd, stage }: Reminder): Promise<SentReminder> {
  const app = await getApp(tx, appId)
  const subscription = await findSubscriptionById(tx, subscriptionId)
  const plan = subscription && (await findPlan(tx, app.id, subscription.planId))
  const customer = subscription?.customerId ? await findCustomer(tx, app.id, subscription.customerId) : null
  if (!subscription || !plan || !customer) throw notFound('subscription')
  return { app, subscription, plan, customer, periodEnd, stage }
}
