import type { Command } from 'commander'
import { counted } from '#shared/counted.ts'
import { requiredChoice } from './ask.ts'
import { appCell, minuteCell, moneyCell, stageCell } from './cells.ts'
import { inChange, withDryRun } from './change.ts'
import { withExamples } from './examples.ts'
import { gatherRows, readLimit, withPages, type PageOptions } from './pages.ts'
import { inSession, performAs, withSandbox, type Session } from './session.ts'
import { UsageError } from './usage-error.ts'

type ListOptions = PageOptions & { readonly limit: string }

/**
 * `reminders unconfirmed` and `settle`, and the same of receipts: mails that may or may not have been sent. `reminders refused`: mails to
 * addresses that do not exist.
 */
export function registerUnconfirmedCommands(program: Command): void {
  const reminders = program.commands.find((command) => command.name() === 'reminders')
  if (!reminders) throw new Error('the reminders group is declared first')
  registerUnconfirmedReminders(reminders)
  registerSettle(reminders, {
    noun: 'reminder',
    sent: 'it was sent: the app gets its event',
    notSent: 'it was not: the next sweep sends it if its stage still applies',
    listed: async ({ ctx }) => {
      const { listUnconfirmedReminders } = await import('#mails/unconfirmed-reminders.ts')
      const { rows } = await listUnconfirmedReminders(ctx, NEWEST)
      return rows.map(({ reminder_id: id, external_ref: ref, handed_over_at: at }) => ({
        id,
        name: `${ref}, handed over ${at} UTC`,
      }))
    },
    record: async (session, id, outcome) => {
      const { settleReminder } = await import('#mails/unconfirmed-reminders.ts')
      await performAs(session, settleReminder, { outcome }, { reminderId: id })
    },
  })
  registerRefused(reminders)
  const receipts = program.command('receipts').description('mails about money that was received or refunded')
  registerUnconfirmedReceipts(receipts)
  registerSettle(receipts, {
    noun: 'receipt',
    sent: 'it was sent',
    notSent: 'it was not: the next sweep sends it',
    listed: async ({ ctx }) => {
      const { listUnconfirmedReceipts } = await import('#mails/unconfirmed-receipts.ts')
      const { rows } = await listUnconfirmedReceipts(ctx, NEWEST)
      return rows.map(({ receipt_id: id, external_ref: ref, created_at: at }) => ({ id, name: `${ref}, of ${at} UTC` }))
    },
    record: async (session, id, outcome) => {
      const { settleReceipt } = await import('#mails/unconfirmed-receipts.ts')
      await performAs(session, settleReceipt, { outcome }, { receiptId: id })
    },
  })
}

/** For a menu. */
const NEWEST = { limit: '100' }

function registerUnconfirmedReminders(reminders: Command): void {
  const list = reminders
    .command('unconfirmed')
    .description(
      'reminders that were handed over without an answer: the mail server’s log shows whether they were sent',
    )
    .action(async (options: ListOptions, command: Command) => {
      const limit = readLimit(options.limit)
      await inSession(command, async ({ ctx, out }) => {
        const { listUnconfirmedReminders } = await import('#mails/unconfirmed-reminders.ts')
        const rows = await gatherRows(out, limit, options, (page) => listUnconfirmedReminders(ctx, page))
        const found = await withSandbox(ctx, rows)
        out.result(found, () => {
          out.table({
            head: ['id', 'app', 'external_ref', 'stage', 'handed over (UTC)', 'error'],
            rows: found.map((row) => [
              row.reminder_id,
              appCell(row),
              row.external_ref,
              stageCell(row.reminder_day),
              minuteCell(row.handed_over_at),
              row.last_error,
            ]),
            none: 'none is unconfirmed',
          })
        })
      })
    })
  withPages(list, '1000')
  withExamples(list, 'reminders unconfirmed', 'reminders unconfirmed --json')
}

function registerUnconfirmedReceipts(receipts: Command): void {
  const list = receipts
    .command('unconfirmed')
    .description('receipts that were handed over without an answer: the mail server’s log shows whether they were sent')
    .action(async (options: ListOptions, command: Command) => {
      const limit = readLimit(options.limit)
      await inSession(command, async ({ ctx, out }) => {
        const { listUnconfirmedReceipts } = await import('#mails/unconfirmed-receipts.ts')
        const rows = await gatherRows(out, limit, options, (page) => listUnconfirmedReceipts(ctx, page))
        const found = await withSandbox(ctx, rows)
        out.result(found, () => {
          out.table({
            head: ['id', 'app', 'transaction', 'external_ref', 'of', 'at (UTC)', 'error'],
            rows: found.map((row) => [
              row.receipt_id,
              appCell(row),
              row.transaction_id,
              row.external_ref,
              `${moneyCell(row.amount, row.currency)} ${row.kind}`,
              minuteCell(row.created_at),
              row.last_error,
            ]),
            none: 'none is unconfirmed',
          })
        })
      })
    })
  withPages(list, '1000')
  withExamples(list, 'receipts unconfirmed', 'receipts unconfirmed --json')
}

interface Settling {
  /** What the mail is called, in the field of the answer too: `reminder_id`. */
  readonly noun: 'reminder' | 'receipt'
  readonly sent: string
  readonly notSent: string
  readonly listed: (session: Session) => Promise<{ readonly id: number; readonly name: string }[]>
  readonly record: (session: Session, id: number, outcome: 'sent' | 'not_sent') => Promise<void>
}

interface SettleOptions {
  readonly sent?: boolean
  readonly notSent?: boolean
}

function registerSettle(group: Command, { noun, sent, notSent, listed, record }: Settling): void {
  const settle = group
    .command('settle [id]')
    .description(`record whether an unconfirmed ${noun} was sent`)
    .option('--sent', sent)
    .option('--not-sent', notSent)
    .action(async (given: string | undefined, options: SettleOptions, command: Command) => {
      await inChange(command, async (session) => {
        if (options.sent === options.notSent) throw new UsageError('give either --sent or --not-sent')
        const { parseNumericId } = await import('#shared/ids.ts')
        const picked = await requiredChoice(given, '<id>', 'Which mail?', async () =>
          (await listed(session)).map(({ id, name }) => ({ value: String(id), name: `${id}: ${name}` })),
        )
        const id = parseNumericId(picked)
        if (id === null) throw new UsageError(`<id> must be the number that ${group.name()} unconfirmed shows`)
        const outcome = options.sent === true ? 'sent' : 'not_sent'
        await record(session, id, outcome)
        session.out.result({ [`${noun}_id`]: id, outcome }, () => session.out.line(`${noun} ${id}: ${outcome}`))
      })
    })
  withDryRun(settle)
  withExamples(settle, `${group.name()} settle 12 --sent`, `${group.name()} settle 12 --not-sent`)
}

function registerRefused(reminders: Command): void {
  const refused = reminders
    .command('refused')
    .description('reminders whose address the mail server refused permanently; sent once the customer has another one')
    .option('--retry', 'let the next sweep try all of them again, after the mail server was fixed')
    .action(async (options: ListOptions & { retry?: boolean }, command: Command) => {
      const limit = readLimit(options.limit)
      await inChange(command, async ({ ctx, out, caller }) => {
        const { listRefusedReminders, retryRefusedReminders } = await import('#mails/refused-reminders.ts')
        if (options.retry) {
          const retried = await retryRefusedReminders(ctx, caller)
          out.result({ retried }, () => out.line(`the next sweep retries ${counted(retried, 'mail')}`))
          return
        }
        const rows = await gatherRows(out, limit, options, (page) => listRefusedReminders(ctx, page))
        const found = await withSandbox(ctx, rows)
        out.result(found, () => {
          out.table({
            head: ['id', 'app', 'external_ref', 'stage', 'to', 'error'],
            rows: found.map((row) => [
              row.reminder_id,
              appCell(row),
              row.external_ref,
              stageCell(row.reminder_day),
              row.to,
              row.last_error,
            ]),
            none: 'no address is refused',
          })
        })
      })
    })
  withPages(refused, '1000')
  withDryRun(refused)
  withExamples(refused, 'reminders refused', 'reminders refused --retry')
}
