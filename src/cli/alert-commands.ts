import { required, requiredWord } from './ask.ts'
import { minuteCell } from './cells.ts'
import { Coloured } from './coloured.ts'
import type { Commands, Texts } from './declaration.ts'
import { durationOf } from './duration-of.ts'
import { listOfService } from './list.ts'
import { fail, performAs } from './session.ts'

/** `alert …`: messages to operators when a problem begins. */
export const commands: Commands = {
  'alert list': listOfService({
    description: 'open alerts, and those of the last thirty days that are over',
    examples: ['alert list', 'alert list --json'],
    rows: async ({ ctx }) => (await import('#alerts/list-alerts.ts')).listAlerts(ctx),
    columns: () => [
      ['state', (row) => (row.closed_at === null ? new Coloured('open', 'red') : 'over')],
      ['kind', (row) => row.kind],
      ['about', (row) => row.subject],
      ['opened (UTC)', (row) => minuteCell(row.opened_at)],
      ['over (UTC)', (row) => minuteCell(row.closed_at)],
      ['muted until (UTC)', (row) => minuteCell(row.muted_until)],
    ],
    none: () => 'no alerts',
    optional: ['muted until (UTC)'],
    codes: ['kind'],
  }),
  'alert test': {
    description: 'send a test message by each channel now; exit 1 if one fails',
    examples: ['alert test'],
    async run({ ctx, out }) {
      const { sendTestAlert } = await import('#alerts/send-test.ts')
      const tried = await sendTestAlert(ctx)
      out.result(tried, () => {
        for (const { channel, error } of tried) out.line(`${channel}: ${error === null ? 'sent' : `failed: ${error}`}`)
      })
      if (tried.some(({ sent }) => !sent)) await fail('provider_error', 'a channel did not take the message')
    },
  },
  'alert mute [kind]': {
    description: 'send no messages about a kind of alert for a while; what still lasts then is reported',
    options: [['--for <duration>', 'such as 30m, 12h or 2d; 0m ends it']],
    examples: ['alert mute bank_silent --for 12h', 'alert mute bank_silent --for 12h --dry-run'],
    async change(session, [given], options: Texts<'for'>) {
      const { ALERT_KINDS } = await import('#alerts/kinds.ts')
      const { muteAlert } = await import('#alerts/mute-alert.ts')
      const { formatTimestamp, formatUtc } = await import('#shared/time.ts')
      const kinds = ALERT_KINDS.map((value) => ({ value, name: value }))
      const kind = await requiredWord(given, '<kind>', 'Which kind?', kinds)
      const for_ms = durationOf(await required(options.for, '--for', 'For how long? (12h)'), '--for', { most: '30d' })
      const { mutedUntil } = await performAs(session, muteAlert, { kind, for_ms }, {})
      session.out.result({ kind, muted_until: formatTimestamp(mutedUntil) }, () =>
        session.out.line(`${kind} is muted until ${formatUtc(mutedUntil)}`),
      )
    },
  },
}
