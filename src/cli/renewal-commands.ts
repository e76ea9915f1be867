import type { Command } from 'commander'
import { required } from './ask.ts'
import { appCell, minuteCell, stageCell, stateCell } from './cells.ts'
import { withExamples } from './examples.ts'
import { oneOf } from './one-of.ts'
import { banner, inSession } from './session.ts'
import { UsageError } from './usage-error.ts'
import type { Who } from './who.ts'

/** `reminders …`, `realtime …` and `mail …`: the daemon's background work, shown or run now. */
export function registerRenewalCommands(program: Command, who: Who): void {
  registerReminders(program, who)
  registerMailTest(program, who)
  registerRealtime(program, who)
}

function registerReminders(program: Command, who: Who): void {
  const reminders = program.command('reminders').description('renewal mails')
  registerReminderPlan(reminders, who)
}

function registerReminderPlan(reminders: Command, who: Who): void {
  const plan = reminders
    .command('plan [app]')
    .description('who gets which mail when, and who gets none and why')
    .option('--days <n>', 'how far to look ahead', '14')
    .action(async (named: string | undefined, options: { days: string }, command: Command) => {
      await inSession(command, who, async ({ ctx, out, app: pick }) => {
        const { planReminders } = await import('#mails/plan-reminders.ts')
        if (!/^\d{1,3}$/.test(options.days)) throw new UsageError('--days must be a number of days')
        const planned = await planReminders(ctx, named === undefined ? null : await pick(named), Number(options.days))
        const shown = planned.map((row) => ({ ...row, sandbox: row.is_test }))
        out.result(shown, () => {
          const rows = shown.map((row) => [
            minuteCell(row.due_at),
            appCell(row),
            row.external_ref,
            stageCell(row.reminder_day),
            row.to,
            stateCell(row.will_send ? 'yes' : (row.reason ?? 'no')),
          ])
          out.table({
            head: ['due (UTC)', 'app', 'external_ref', 'stage', 'to', 'will send'],
            rows,
            none: `no mails are due in ${options.days} days`,
          })
        })
      })
    })
  withExamples(plan, 'reminders plan', 'reminders plan 1 --days 30 --json')
}

function registerMailTest(program: Command, who: Who): void {
  const test = program
    .command('mail')
    .description('the mail server')
    .command('test [address]')
    .description('send a sample reminder with the TEST mark to your own address')
    .option('--locale <locale>', 'en or vi', oneOf('en', 'vi'), 'en')
    .action(async (address: string | undefined, { locale }: { locale: 'en' | 'vi' }, command: Command) => {
      await inSession(command, who, async ({ ctx, out }) => {
        const to = await required(address, '<address>', 'Your address:')
        const { sendTestMail } = await import('#mails/send-test-mail.ts')
        await sendTestMail(ctx, to, locale)
        const { smtpUrl, home } = ctx.config
        out.result({ address: to, sent: true }, () => {
          out.line(`the mail to ${to} was ${smtpUrl === null ? 'written to a folder:' : 'accepted by the mail server'}`)
          if (smtpUrl === null) out.line(`${home}/mail`)
        })
      })
    })
  withExamples(test, 'mail test me@example.com', 'mail test me@example.com --locale vi')
}

interface ResyncOptions {
  readonly all?: boolean
  readonly failed?: boolean
  readonly dryRun?: boolean
  readonly after?: string
}

function registerRealtime(program: Command, who: Who): void {
  const resync = program
    .command('realtime')
    .description('the realtime databases of client-side apps')
    .command('resync [app] [external_ref]')
    .description('write nodes as they should be now; ended subscriptions become free')
    .option('--all', 'all subscriptions of the app')
    .option('--failed', 'those whose last write failed')
    .option('--dry-run', 'only show what differs')
    .option('--after <n>', 'continue a run that was interrupted')
    .action(async (named: string | undefined, ref: string | undefined, options: ResyncOptions, command: Command) => {
      await inSession(command, who, async ({ ctx, out, caller, app: pick }) => {
        const { resyncNodes } = await import('#subscriptions/resync-node.ts')
        if (options.after !== undefined && !/^\d{1,15}$/.test(options.after))
          throw new UsageError('--after must be a number')
        const isMany = options.all === true || options.failed === true
        if ([ref !== undefined, options.all, options.failed].filter(Boolean).length > 1)
          throw new UsageError('<external_ref>, --all and --failed exclude each other')
        const app = await pick(named)
        const externalRef = isMany ? undefined : await required(ref, '<external_ref>, --all or --failed')
        const result = await resyncNodes(ctx, {
          app,
          externalRef,
          all: options.all,
          failed: options.failed,
          dryRun: options.dryRun,
          after: options.after === undefined ? undefined : Number(options.after),
          caller,
          onProgress: ({ written, failed }) => out.progress(`${written} written, ${failed} failed so far`),
        })
        out.result(result, () => {
          out.line(banner(app))
          if (result.differences) out.line(`${result.differing ?? 0} nodes differ`)
          else out.line(`${result.written} written, ${result.failed} failed`)
          for (const { external_ref, error } of result.failures ?? []) out.line(`${external_ref}: ${error}`)
          if (result.next !== undefined) out.line(`interrupted: continue with --after ${result.next}`)
        })
        if (result.failed > 0) process.exitCode = 1
      })
    })
  withExamples(resync, 'realtime resync 2 user-42', 'realtime resync 2 --failed', 'realtime resync 2 --all --dry-run')
}
