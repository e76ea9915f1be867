import type { Context } from '#context.ts'
import type { PageRequest } from '#db/conditions.ts'
import { databaseNow } from '#db/database-now.ts'
import { ListQuery, listPage, presentPage, type Page } from '#http/list-page.ts'
import { formatTimestamp, type RealTime } from '#shared/time.ts'
import { validate } from '#shared/validate.ts'
import {
  countSelected,
  listSelected,
  selectRefusedReminders,
  selectUnconfirmedReceipts,
  selectUnconfirmedReminders,
  type ReminderWithOwner,
  type Selection,
} from './lists/store.ts'

/** Mails that operators look after. */
export interface MailList<View> {
  /** A page of them, newest first. */
  page(ctx: Context, query?: unknown): Promise<Page<View>>
  /** How many there are. */
  count(ctx: Context): Promise<number>
}

/** What a list shows of each mail. */
export type ViewOf<List> = List extends MailList<infer View> ? View : never

/**
 * Reminders that may have been sent: the connection or the daemon died between the hand-over and the mail server's answer. The mail
 * server's log shows what became of each; `settleReminder` records it.
 */
export const unconfirmedReminders = mailList('unconfirmed-reminders', selectUnconfirmedReminders, (row) => ({
  ...presentReminder(row),
  handed_over_at: formatTimestamp(row.handedOverAt ?? row.claimedAt),
}))

/** Receipts that may have been sent, as `unconfirmedReminders`. `amount` is in the smallest unit; `created_at` is the time of the change that the receipt reports. */
export const unconfirmedReceipts = mailList('unconfirmed-receipts', selectUnconfirmedReceipts, (row) => ({
  receipt_id: row.id,
  app_id: row.appId,
  transaction_id: row.transactionId,
  external_ref: row.externalRef,
  kind: row.kind,
  amount: row.amount,
  currency: row.currency,
  created_at: formatTimestamp(row.createdAt),
  last_error: row.lastError,
}))

/**
 * Reminders that are not sent: the mail server said that the address does not exist, and the customer still has that address. They are
 * sent as soon as the customer has another one.
 */
export const refusedReminders = mailList('refused-reminders', selectRefusedReminders, (row) => ({
  ...presentReminder(row),
  to: row.refusedTo ?? '',
  refused_at: formatTimestamp(row.claimedAt),
}))

function mailList<Row extends { readonly id: number }, View>(
  name: string,
  select: (now: RealTime) => Selection<Row>,
  present: (row: Row) => View,
): MailList<View> {
  const selected = async (ctx: Context): Promise<Selection<Row>> => select(await databaseNow(ctx, ctx.db))
  return {
    async page(ctx, query = {}) {
      const selection = await selected(ctx)
      const list = (request: PageRequest) => listSelected(ctx.db, selection, request)
      return presentPage(await listPage(name, validate(ListQuery, query), list, selection.timeOf), present)
    },
    count: async (ctx) => countSelected(ctx.db, await selected(ctx)),
  }
}

function presentReminder(row: ReminderWithOwner) {
  return {
    reminder_id: row.id,
    app_id: row.appId,
    external_ref: row.externalRef,
    reminder_day: row.stage,
    period_end: formatTimestamp(row.periodEnd),
    last_error: row.lastError,
  }
}
