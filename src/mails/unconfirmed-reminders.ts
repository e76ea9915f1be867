import { z } from 'zod'
import { getApp } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { findCustomer } from '#customers/store.ts'
import { command } from '#commands/command.ts'
import type { Tx } from '#commands/transaction.ts'
import { databaseNow } from '#db/database-now.ts'
import { listPage, presentPage, type Page, type PageRequest } from '#http/page-of.ts'
import { findPlan } from '#plans/store.ts'
import { AppError, notFound } from '#shared/errors.ts'
import { MINUTE_MS, addMs, formatTimestamp, type RealTime } from '#shared/time.ts'
import { findSubscriptionById } from '#subscriptions/store.ts'
import { recordSent, type SentReminder } from '#mails/record-sent.ts'
import {
  claimOf,
  countSelected,
  findReminder,
  listWithOwner,
  releaseClaim,
  unconfirmed,
  type Reminder,
  type ReminderWithOwner,
} from './store.ts'

/** A mail that was handed over this long ago will not be confirmed any more. */
const CONFIRMATION_MS = 3 * MINUTE_MS

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

/** A page of them, newest first. The mail server's log shows what became of each; `settleReminder` records it. */
export async function listUnconfirmedReminders(ctx: Context, page: unknown = {}): Promise<Page<UnconfirmedReminder>> {
  const selected = unconfirmed(await confirmedBy(ctx))
  const list = (request: PageRequest) => listWithOwner(ctx.db, selected, request)
  return presentPage(await listPage(page, list, ({ claimedAt }) => claimedAt), present)
}

/** How many there are. */
export async function countUnconfirmedReminders(ctx: Context): Promise<number> {
  return countSelected(ctx.db, unconfirmed(await confirmedBy(ctx)))
}

/** Whether the mail was handed over so long before `now`, by the database's clock, that no answer will come. */
export function isUnconfirmed({ status, handedOverAt }: Reminder, now: RealTime): boolean {
  return status === 'claimed' && handedOverAt !== null && handedOverAt <= addMs(now, -CONFIRMATION_MS)
}

async function confirmedBy(ctx: Context): Promise<RealTime> {
  return addMs(await databaseNow(ctx, ctx.db), -CONFIRMATION_MS)
}

function present(row: ReminderWithOwner): UnconfirmedReminder {
  return {
    reminder_id: row.id,
    app_id: row.appId,
    external_ref: row.externalRef,
    reminder_day: row.stage,
    period_end: formatTimestamp(row.periodEnd),
    handed_over_at: formatTimestamp(row.handedOverAt ?? row.claimedAt),
    last_error: row.lastError,
  }
}

/**
 * Records what an operator found out about an unconfirmed mail. `sent` marks it as sent and emits its event; `not_sent` lets the next sweep
 * send it, if its stage still applies. Throws `not_found`, and `invalid_request` for a mail that is not unconfirmed, or not yet: it may
 * be on its way.
 */
export const settleReminder = command({
  name: 'reminder.settle',
  input: z.strictObject({ outcome: z.enum(['sent', 'not_sent']) }),
  async run(tx, { outcome }, { reminderId }: { readonly reminderId: number }) {
    const reminder = await findReminder(tx, reminderId)
    if (!reminder) throw notFound('reminder')
    if (!isUnconfirmed(reminder, await databaseNow(tx.ctx, tx)))
      throw new AppError('invalid_request', 'this reminder is not unconfirmed')
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
