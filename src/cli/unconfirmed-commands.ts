import type { Command } from 'commander'
import type { Command as CommandValue } from '#commands/command.ts'
import type { Context } from '#context.ts'
import type {
  MailList,
  refusedReminders,
  unconfirmedReceipts,
  unconfirmedReminders,
  ViewOf,
} from '#mails/mail-lists.ts'
import { counted } from '#shared/counted.ts'
import { requiredChoice } from './ask.ts'
import { appCell, minuteCell, moneyCell, stageCell } from './cells.ts'
import { inChange, withDryRun } from './change.ts'
import { withExamples } from './examples.ts'
import { gatherRows, readLimit, withPages, type PageOptions } from './pages.ts'
import { inSession, performAs, withSandbox, type Session } from './session.ts'
import type { TableOptions } from './table.ts'
import { UsageError } from './usage-error.ts'
import type { Who } from './who.ts'

type ListOptions = PageOptions & { readonly limit: string }
type Shown<View> = View & { readonly sandbox: boolean | null }

/** A list of mails as a table. */
interface MailTable<View> {
  readonly list: () => Promise<MailList<View>>
  readonly head: readonly string[]
  readonly cells: (row: Shown<View>) => TableOptions['rows'][number]
  readonly none: string
}

/** Mails of one kind that may or may not have been sent, and what settles one. */
interface Unconfirmed<View> extends MailTable<View> {
  /** What the mail is called, in the field of the answer too: `reminder_id`. */
  readonly noun: 'reminder' | 'receipt'
  readonly sent: string
  readonly notSent: string
  /** For a menu. */
  readonly choice: (row: View) => { readonly id: number; readonly name: string }
  readonly settle: () => Promise<CommandValue<{ readonly mailId: number }, void>>
}

const REMINDERS: Unconfirmed<ViewOf<typeof unconfirmedReminders>> = {
  noun: 'reminder',
  sent: 'it was sent: the app gets its event',
  notSent: 'it was not: the next sweep sends it if its stage still applies',
  choice: ({ reminder_id: id, external_ref: ref, handed_over_at: at }) => ({
    id,
    name: `${ref}, handed over ${at} UTC`,
  }),
  settle: async () => (await import('#mails/settle-mail.ts')).settleReminder,
  list: async () => (await import('#mails/mail-lists.ts')).unconfirmedReminders,
  head: ['id', 'app', 'external_ref', 'stage', 'handed over (UTC)', 'error'],
  cells: (row) => [
    row.reminder_id,
    appCell(row),
    row.external_ref,
    stageCell(row.reminder_day),
    minuteCell(row.handed_over_at),
    row.last_error,
  ],
  none: 'none is unconfirmed',
}

const RECEIPTS: Unconfirmed<ViewOf<typeof unconfirmedReceipts>> = {
  noun: 'receipt',
  sent: 'it was sent',
  notSent: 'it was not: the next sweep sends it',
  choice: ({ receipt_id: id, external_ref: ref, created_at: at }) => ({ id, name: `${ref}, of ${at} UTC` }),
  settle: async () => (await import('#mails/settle-mail.ts')).settleReceipt,
  list: async () => (await import('#mails/mail-lists.ts')).unconfirmedReceipts,
  head: ['id', 'app', 'transaction', 'external_ref', 'of', 'at (UTC)', 'error'],
  cells: (row) => [
    row.receipt_id,
    appCell(row),
    row.transaction_id,
    row.external_ref,
    `${moneyCell(row.amount, row.currency)} ${row.kind}`,
    minuteCell(row.created_at),
    row.last_error,
  ],
  none: 'none is unconfirmed',
}

const REFUSED: MailTable<ViewOf<typeof refusedReminders>> = {
  list: async () => (await import('#mails/mail-lists.ts')).refusedReminders,
  head: ['id', 'app', 'external_ref', 'stage', 'to', 'error'],
  cells: (row) => [
    row.reminder_id,
    appCell(row),
    row.external_ref,
    stageCell(row.reminder_day),
    row.to,
    row.last_error,
  ],
  none: 'no address is refused',
}

/**
 * `reminders unconfirmed` and `settle`, and the same of receipts: mails that may or may not have been sent. `reminders refused`: mails to
 * addresses that do not exist.
 */
export function registerUnconfirmedCommands(program: Command, who: Who): void {
  const reminders = program.commands.find((command) => command.name() === 'reminders')
  if (!reminders) throw new Error('the reminders group is declared first')
  registerUnconfirmed(reminders, REMINDERS, who)
  registerSettle(reminders, REMINDERS, who)
  registerRefused(reminders, who)
  const receipts = program.command('receipts').description('mails about money that was received or refunded')
  registerUnconfirmed(receipts, RECEIPTS, who)
  registerSettle(receipts, RECEIPTS, who)
}

async function showMails<View extends { readonly app_id: number }>(
  { ctx, out }: Session,
  limit: number,
  options: PageOptions,
  { list, head, cells, none }: MailTable<View>,
): Promise<void> {
  const mails = await list()
  const rows = await gatherRows(out, limit, options, (page) => mails.page(ctx, page))
  const found = await withSandbox(ctx, rows)
  out.result(found, () => out.table({ head, rows: found.map(cells), none }))
}

function registerUnconfirmed<View extends { readonly app_id: number }>(
  group: Command,
  mails: Unconfirmed<View>,
  who: Who,
): void {
  const list = group
    .command('unconfirmed')
    .description(
      `${group.name()} that were handed over without an answer: the mail server’s log shows whether they were sent`,
    )
    .action(async (options: ListOptions, command: Command) => {
      const limit = readLimit(options.limit)
      await inSession(command, who, (session) => showMails(session, limit, options, mails))
    })
  withPages(list, '1000')
  withExamples(list, `${group.name()} unconfirmed`, `${group.name()} unconfirmed --json`)
}

interface SettleOptions {
  readonly sent?: boolean
  readonly notSent?: boolean
}

function registerSettle<View>(group: Command, mails: Unconfirmed<View>, who: Who): void {
  const { noun } = mails
  const settle = group
    .command('settle [id]')
    .description(`record whether an unconfirmed ${noun} was sent`)
    .option('--sent', mails.sent)
    .option('--not-sent', mails.notSent)
    .action(async (given: string | undefined, options: SettleOptions, command: Command) => {
      await inChange(command, who, async (session) => {
        if (options.sent === options.notSent) throw new UsageError('give either --sent or --not-sent')
        const { parseNumericId } = await import('#shared/ids.ts')
        const picked = await requiredChoice(given, '<id>', 'Which mail?', () => choicesOf(session.ctx, mails))
        const mailId = parseNumericId(picked)
        if (mailId === null) throw new UsageError(`<id> must be the number that ${group.name()} unconfirmed shows`)
        const outcome = options.sent === true ? 'sent' : 'not_sent'
        await performAs(session, await mails.settle(), { outcome }, { mailId })
        session.out.result({ [`${noun}_id`]: mailId, outcome }, () => session.out.line(`${noun} ${mailId}: ${outcome}`))
      })
    })
  withDryRun(settle)
  withExamples(settle, `${group.name()} settle 12 --sent`, `${group.name()} settle 12 --not-sent`)
}

async function choicesOf<View>(ctx: Context, { list, choice }: Unconfirmed<View>) {
  const { rows } = await (await list()).page(ctx, { limit: '100' })
  return rows.map(choice).map(({ id, name }) => ({ value: String(id), name: `${id}: ${name}` }))
}

function registerRefused(reminders: Command, who: Who): void {
  const refused = reminders
    .command('refused')
    .description('reminders whose address the mail server refused permanently; sent once the customer has another one')
    .option('--retry', 'let the next sweep try all of them again, after the mail server was fixed')
    .action(async (options: ListOptions & { retry?: boolean }, command: Command) => {
      const limit = readLimit(options.limit)
      await inChange(command, who, async (session) => {
        const { ctx, out, caller } = session
        if (!options.retry) return showMails(session, limit, options, REFUSED)
        const { retryRefusedReminders } = await import('#mails/retry-refused.ts')
        const retried = await retryRefusedReminders(ctx, caller)
        out.result({ retried }, () => out.line(`the next sweep retries ${counted(retried, 'mail')}`))
      })
    })
  withPages(refused, '1000')
  withDryRun(refused)
  withExamples(refused, 'reminders refused', 'reminders refused --retry')
}
