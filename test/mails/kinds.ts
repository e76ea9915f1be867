import type { CheckResult } from '#shared/check-result.ts'
import { operator } from '#commands/caller.ts'
import type { Command } from '#commands/command.ts'
import { perform } from '#commands/perform.ts'
import type { Context } from '#context.ts'
import type { Table } from '#db/table.ts'
import { checkReceipts, checkReminders } from '#doctor/check-work.ts'
import { unconfirmedReceipts, unconfirmedReminders, type MailList } from '#mails/mail-lists.ts'
import type { MailRow } from '#mail/mail-columns.ts'
import { reminders } from '#mails/reminders/store.ts'
import { sendDueReceipts } from '#mails/receipts/send-due-receipts.ts'
import { sendDueReminders } from '#mails/reminders/send-due-reminders.ts'
import { settleReceipt, settleReminder } from '#mails/settle-mail.ts'
import { AppError } from '#shared/errors.ts'
import { receipts } from '#transactions/receipts/store.ts'
import { aScene, type Scene } from '../renewals/scene.ts'
import { changeApp } from '../support/operators.ts'

/** One kind of mails, for tests of the rules that both have. */
export interface Kind {
  readonly noun: 'reminder' | 'receipt'
  readonly table: Table<MailRow>
  readonly sweep: (ctx: Context) => Promise<unknown>
  readonly unconfirmed: MailList<object>
  readonly settle: Command<{ readonly mailId: number }, void>
  readonly check: (ctx: Context) => Promise<CheckResult[]>
  /** How long a mail waits where the mail server is unreachable. */
  readonly unreachable: '0s' | '1m'
  /** What operators see of one that is unconfirmed. */
  readonly shown: object
  /** When the mails of subscriptions that began on 2026-03-01 10:00:00 are due. */
  readonly due: string
}

export const KINDS: readonly Kind[] = [
  {
    noun: 'reminder',
    table: reminders,
    sweep: sendDueReminders,
    unconfirmed: unconfirmedReminders,
    settle: settleReminder,
    check: checkReminders,
    unreachable: '0s',
    shown: { reminder_day: 3, period_end: '2026-04-01 10:00:00', handed_over_at: '2026-03-29 10:00:00' },
    due: '2026-03-29 10:00:00',
  },
  {
    noun: 'receipt',
    table: receipts,
    sweep: sendDueReceipts,
    unconfirmed: unconfirmedReceipts,
    settle: settleReceipt,
    check: checkReceipts,
    unreachable: '1m',
    shown: { kind: 'received', amount: 99_000, currency: 'VND', created_at: '2026-03-01 10:00:00' },
    due: '2026-03-01 10:00:00',
  },
]

/** A seller's app that wants the mails of this kind, of which so many are due; with `emailOf`, each to a customer of its own. */
export async function dueMails(
  { noun, due }: Kind,
  mails: number,
  emailOf?: (number: number) => string,
): Promise<Scene> {
  const scene = await aScene()
  if (noun === 'receipt') await changeApp(scene.ctx, 'tester', scene.seller.app, { receipts: true })
  await scene.subscribeMany(mails, emailOf)
  scene.ctx.clock.set(due)
  return scene
}

/** The ids of those that may or may not have been sent, as operators page through them. */
export async function unconfirmedIds({ noun, unconfirmed }: Kind, ctx: Context, limit = '100'): Promise<number[]> {
  const ids: number[] = []
  let cursor: string | undefined
  do {
    const { rows, nextCursor } = await unconfirmed.page(ctx, { limit, ...(cursor === undefined ? {} : { cursor }) })
    ids.push(...rows.map((row) => (row as Record<string, number>)[`${noun}_id`]!))
    cursor = nextCursor ?? undefined
  } while (cursor !== undefined)
  return ids
}

/** What an operator's decision about a mail comes to. */
export async function settled(
  { settle }: Kind,
  ctx: Context,
  mailId: number,
  outcome: 'sent' | 'not_sent',
): Promise<'settled' | 'refused'> {
  try {
    await perform(ctx, operator('mai'), settle, { outcome }, { mailId })
    return 'settled'
  } catch (error) {
    if (error instanceof AppError && error.code === 'invalid_request') return 'refused'
    throw error
  }
}
