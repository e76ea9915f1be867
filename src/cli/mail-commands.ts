import type { Command as CommandValue } from '#commands/command.ts'
import type { MailList, unconfirmedReceipts, unconfirmedReminders, ViewOf } from '#mails/mail-lists.ts'
import { counted } from '#shared/counted.ts'
import { LOCALES, type Locale } from '#shared/locale.ts'
import type { ResyncInput } from '#subscriptions/resync-node.ts'
import { required } from './ask.ts'
import { appCell, minuteCell, moneyCell, stageCell, stateCell } from './cells.ts'
import type { Commands, Flags, Texts } from './declaration.ts'
import { listOfApps, type Marked, type OfApps } from './list.ts'
import { pickId, type IdChoice } from './number-of.ts'
import { oneOf } from './one-of.ts'
import { banner, fail, performAs } from './session.ts'
import type { ListColumn } from './table.ts'
import { UsageError } from './usage-error.ts'

const { run: showRefused, ...refused } = listOfApps({
  description: 'reminders whose address the mail server refused permanently; sent once the customer has another one',
  options: [['--retry', 'let the next sweep try all of them again, after the mail server was fixed']],
  examples: ['reminders refused', 'reminders refused --retry'],
  defaultLimit: '1000',
  page: async ({ ctx }, query) => (await import('#mails/mail-lists.ts')).refusedReminders.page(ctx, query),
  columns: () => [
    ['id', (row) => row.reminder_id],
    ['app', appCell],
    ['external_ref', (row) => row.external_ref],
    ['stage', (row) => stageCell(row.reminder_day)],
    ['to', (row) => row.to],
    ['error', (row) => row.last_error],
  ],
  none: () => 'no address is refused',
})

/** `reminders …`, `receipts …`, `mail …` and `realtime …`: the daemon's background work, shown, decided or run now. */
export const commands: Commands = {
  'reminders plan [app]': listOfApps({
    description: 'who gets which mail when, and who gets none and why',
    options: [['--days <n>', 'how far to look ahead', '14']],
    examples: ['reminders plan', 'reminders plan 1 --days 30 --json'],
    async rows({ ctx, app, options: { days } }: OfApps<{ days: string }>) {
      const { planReminders } = await import('#mails/reminders/plan-reminders.ts')
      if (!/^\d{1,3}$/.test(days)) throw new UsageError('--days must be a number of days')
      return planReminders(ctx, app, Number(days))
    },
    columns: ({ app }) => [
      ['due (UTC)', (row) => minuteCell(row.due_at)],
      !app && ['app', appCell],
      ['external_ref', (row) => row.external_ref],
      ['stage', (row) => stageCell(row.reminder_day)],
      ['to', (row) => row.to],
      ['will send', (row) => stateCell(row.will_send ? 'yes' : (row.reason ?? 'no'))],
    ],
    none: ({ options: { days } }) => `no mails are due in ${days} days`,
    isHeaded: true,
    optional: ['to'],
  }),
  ...unconfirmed<ViewOf<typeof unconfirmedReminders>>({
    noun: 'reminder',
    list: async () => (await import('#mails/mail-lists.ts')).unconfirmedReminders,
    columns: [
      ['id', (row) => row.reminder_id],
      ['app', appCell],
      ['external_ref', (row) => row.external_ref],
      ['stage', (row) => stageCell(row.reminder_day)],
      ['handed over (UTC)', (row) => minuteCell(row.handed_over_at)],
      ['error', (row) => row.last_error],
    ],
    settle: async () => (await import('#mails/settle-mail.ts')).settleReminder,
    sent: 'it was sent: the app gets its event',
    notSent: 'it was not: the next sweep sends it if its stage still applies',
    choice: (row) => ({ id: row.reminder_id, words: `${row.external_ref}, handed over ${row.handed_over_at} UTC` }),
  }),
  'reminders refused': {
    ...refused,
    async change(session, args, options: Flags<'retry'>) {
      if (!options.retry) return showRefused(session, args, options)
      const { retryRefusedReminders } = await import('#mails/reminders/retry-refused.ts')
      const retried = await retryRefusedReminders(session.ctx, session.caller)
      session.out.result({ retried }, () => session.out.line(`the next sweep retries ${counted(retried, 'mail')}`))
    },
  },
  ...unconfirmed<ViewOf<typeof unconfirmedReceipts>>({
    noun: 'receipt',
    list: async () => (await import('#mails/mail-lists.ts')).unconfirmedReceipts,
    columns: [
      ['id', (row) => row.receipt_id],
      ['app', appCell],
      ['transaction', (row) => row.transaction_id],
      ['external_ref', (row) => row.external_ref],
      ['of', (row) => `${moneyCell(row.amount, row.currency)} ${row.kind}`],
      ['at (UTC)', (row) => minuteCell(row.created_at)],
      ['error', (row) => row.last_error],
    ],
    settle: async () => (await import('#mails/settle-mail.ts')).settleReceipt,
    sent: 'it was sent',
    notSent: 'it was not: the next sweep sends it',
    choice: (row) => ({ id: row.receipt_id, words: `${row.external_ref}, of ${row.created_at} UTC` }),
  }),
  'mail test [address]': {
    description: 'send a sample reminder with the TEST mark to your own address',
    options: [['--locale <locale>', 'en or vi', oneOf(...LOCALES), 'en']],
    examples: ['mail test me@example.com', 'mail test me@example.com --locale vi'],
    async run({ ctx, out }, [address], { locale }: { locale: Locale }) {
      const to = await required(address, '<address>', 'Your address:')
      const { sendTestMail } = await import('#mails/send-test-mail.ts')
      await sendTestMail(ctx, to, locale)
      const { smtpUrl, home } = ctx.config
      out.result({ address: to, sent: true }, () => {
        out.line(`the mail to ${to} was ${smtpUrl === null ? 'written to a folder:' : 'accepted by the mail server'}`)
        if (smtpUrl === null) out.line(`${home}/mail`)
      })
    },
  },
  'realtime resync [app] [external_ref]': {
    description: 'write nodes as they should be now; ended subscriptions become free',
    options: [
      ['--all', 'all subscriptions of the app'],
      ['--failed', 'those whose last write failed'],
      ['--dry-run', 'only show what differs'],
      ['--after <n>', 'continue a run that was interrupted'],
    ],
    examples: ['realtime resync 2 user-42', 'realtime resync 2 --failed', 'realtime resync 2 --all --dry-run'],
    async run({ ctx, out, caller, pickApp }, [named, ref], { all, failed, dryRun, after }: ResyncOptions) {
      const { compareNodes, resyncNodes } = await import('#subscriptions/resync-node.ts')
      if (after !== undefined && !/^\d{1,15}$/.test(after)) throw new UsageError('--after must be a number')
      if ([ref !== undefined, all, failed].filter(Boolean).length > 1)
        throw new UsageError('<external_ref>, --all and --failed exclude each other')
      const app = await pickApp(named)
      const whole = all ? 'all' : failed ? 'failed' : null
      const input: ResyncInput = {
        app,
        scope: whole ?? { externalRef: await required(ref, '<external_ref>, --all or --failed') },
        after: after === undefined ? undefined : Number(after),
        onProgress: (done) => out.progress(`${done.written} written, ${done.failed} failed so far`),
      }
      const compared = dryRun ? await compareNodes(ctx, input) : null
      const result = compared ?? (await resyncNodes(ctx, caller, input))
      out.result(result, () => {
        out.line(banner(app))
        if (compared) out.line(`${compared.differing} nodes differ`)
        else out.line(`${result.written} written, ${result.failed} failed`)
        for (const { external_ref, error } of result.failures ?? []) out.line(`${external_ref}: ${error}`)
        if (result.next !== undefined) out.line(`interrupted: continue with --after ${result.next}`)
      })
      if (result.failed > 0) await fail('provider_error', `${counted(result.failed, 'node')} not written`)
    },
  },
}

/** Mails of one kind that may or may not have been sent, and what settles one. */
interface Unconfirmed<View> {
  /** What the mail is called, in the field of the answer too: `reminder_id`. */
  readonly noun: 'reminder' | 'receipt'
  list(): Promise<MailList<View>>
  readonly columns: readonly ListColumn<Marked<View>>[]
  settle(): Promise<CommandValue<{ readonly mailId: number }, void>>
  readonly sent: string
  readonly notSent: string
  readonly choice: (row: View) => IdChoice
}

function unconfirmed<View extends { readonly app_id: number }>(mails: Unconfirmed<View>): Commands {
  const { noun } = mails
  return {
    [`${noun}s unconfirmed`]: listOfApps<View>({
      description: `${noun}s that were handed over without an answer: the mail server’s log shows whether they were sent`,
      examples: [`${noun}s unconfirmed`, `${noun}s unconfirmed --json`],
      defaultLimit: '1000',
      page: async ({ ctx }, query) => (await mails.list()).page(ctx, query),
      columns: () => mails.columns,
      none: () => 'none is unconfirmed',
    }),
    [`${noun}s settle [id]`]: {
      description: `record whether an unconfirmed ${noun} was sent`,
      options: [
        ['--sent', mails.sent],
        ['--not-sent', mails.notSent],
      ],
      examples: [`${noun}s settle 12 --sent`, `${noun}s settle 12 --not-sent`],
      async change(session, [given], { sent, notSent }: Flags<'sent' | 'notSent'>) {
        const { ctx, out } = session
        if (sent === notSent) throw new UsageError('give either --sent or --not-sent')
        const mailId = await pickId(given, {
          question: 'Which mail?',
          choices: async () => (await (await mails.list()).page(ctx, { limit: '100' })).rows.map(mails.choice),
          refusal: () => `<id> must be the number that ${noun}s unconfirmed shows`,
        })
        const outcome = sent ? 'sent' : 'not_sent'
        await performAs(session, await mails.settle(), { outcome }, { mailId })
        out.result({ [`${noun}_id`]: mailId, outcome }, () => out.line(`${noun} ${mailId}: ${outcome}`))
      },
    },
  }
}

type ResyncOptions = Flags<'all' | 'failed' | 'dryRun'> & Texts<'after'>
