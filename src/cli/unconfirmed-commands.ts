import type { Command } from 'commander'
import { requiredChoice } from './ask.ts'
import { appCell, minuteCell, stageCell } from './cells.ts'
import { inChange, withDryRun } from './change.ts'
import { withExamples } from './examples.ts'
import { inSession, performAs, withSandbox } from './session.ts'
import { UsageError } from './usage-error.ts'

/** `reminders unconfirmed` and `settle`: mails of which nobody knows whether they left; `refused`: mails to addresses that are not there. */
export function registerUnconfirmedCommands(program: Command): void {
  const reminders = program.commands.find((command) => command.name() === 'reminders')
  if (!reminders) throw new Error('the reminders group is declared first')
  registerList(reminders)
  registerSettle(reminders)
  registerRefused(reminders)
}

function registerList(reminders: Command): void {
  const list = reminders
    .command('unconfirmed')
    .description('mails that were handed over without an answer: the mail server’s log tells whether they left')
    .action(async (_options: object, command: Command) => {
      await inSession(command, async ({ ctx, out }) => {
        const { listUnconfirmedReminders } = await import('#renewals/unconfirmed-reminders.ts')
        const found = await withSandbox(ctx, await listUnconfirmedReminders(ctx))
        out.result(found, () => {
          const rows = found.map((row) => [
            row.reminder_id,
            appCell(row),
            row.external_ref,
            stageCell(row.reminder_day),
            minuteCell(row.handed_over_at),
            row.last_error,
          ])
          out.table({
            head: ['id', 'app', 'external_ref', 'stage', 'handed over (UTC)', 'error'],
            rows,
            none: 'none is unconfirmed',
          })
        })
      })
    })
  withExamples(list, 'reminders unconfirmed', 'reminders unconfirmed --json')
}

interface SettleOptions {
  readonly sent?: boolean
  readonly notSent?: boolean
}

function registerSettle(reminders: Command): void {
  const settle = reminders
    .command('settle [id]')
    .description('record whether an unconfirmed mail left')
    .option('--sent', 'it left: the app is told')
    .option('--not-sent', 'it did not: the next sweep sends it where its stage still holds')
    .action(async (id: string | undefined, options: SettleOptions, command: Command) => {
      await inChange(command, async (session) => {
        const { ctx, out } = session
        if (options.sent === options.notSent) throw new UsageError('say either --sent or --not-sent')
        const [{ listUnconfirmedReminders, settleReminder }, { parseNumericId }] = await Promise.all([
          import('#renewals/unconfirmed-reminders.ts'),
          import('#shared/ids.ts'),
        ])
        const named = await requiredChoice(id, '<id>', 'Which mail?', async () =>
          (await listUnconfirmedReminders(ctx)).map((row) => ({
            value: String(row.reminder_id),
            name: `${row.reminder_id}: ${row.external_ref}, handed over ${row.handed_over_at} UTC`,
          })),
        )
        const reminderId = parseNumericId(named)
        if (reminderId === null) throw new UsageError('<id> must be the number that reminders unconfirmed shows')
        const outcome = options.sent === true ? 'sent' : 'not_sent'
        await performAs(session, settleReminder, { outcome }, { reminderId })
        out.result({ reminder_id: reminderId, outcome }, () => out.line(`reminder ${reminderId}: ${outcome}`))
      })
    })
  withDryRun(settle)
  withExamples(settle, 'reminders settle 12 --sent', 'reminders settle 12 --not-sent')
}

function registerRefused(reminders: Command): void {
  const refused = reminders
    .command('refused')
    .description('mails whose address the mail server refused for good; sent once the customer has another one')
    .option('--retry', 'let the next sweep try them again, after the mail server was fixed')
    .action(async (options: { retry?: boolean }, command: Command) => {
      await inChange(command, async ({ ctx, out, caller }) => {
        const { listRefusedReminders, retryRefusedReminders } = await import('#renewals/refused-reminders.ts')
        if (options.retry) {
          const retried = await retryRefusedReminders(ctx, caller)
          out.result({ retried }, () => out.line(`${retried} mail(s) are tried again by the next sweep`))
          return
        }
        const found = await withSandbox(ctx, await listRefusedReminders(ctx))
        out.result(found, () => {
          const rows = found.map((row) => [
            row.reminder_id,
            appCell(row),
            row.external_ref,
            stageCell(row.reminder_day),
            row.to,
            row.last_error,
          ])
          out.table({ head: ['id', 'app', 'external_ref', 'stage', 'to', 'error'], rows, none: 'none is refused' })
        })
      })
    })
  withDryRun(refused)
  withExamples(refused, 'reminders refused', 'reminders refused --retry')
}
