import { counted } from '#shared/counted.ts'
import type { DeliveryStatus } from '#webhooks/store.ts'
import { goAhead, required } from './ask.ts'
import { minuteCell, stateCell } from './cells.ts'
import { changeIn, type Consent } from './change.ts'
import { YES, type Commands, type Texts } from './declaration.ts'
import { listOfApp, type OfApp } from './list.ts'
import { oneOf } from './one-of.ts'
import { banner, bannersOf, fail, performAs, printOf, type Session } from './session.ts'
import { UsageError } from './usage-error.ts'

const STATUSES: readonly DeliveryStatus[] = ['pending', 'delivered', 'failed', 'not_configured']

/** `webhook …`: deliveries to the apps. */
export const commands: Commands = {
  'webhook list [app]': listOfApp({
    description: "an app's deliveries, newest first",
    options: [['--status <status>', STATUSES.join(', '), oneOf(...STATUSES)]],
    examples: ['webhook list 1', 'webhook list 1 --status failed'],
    async page({ ctx, app, options }: OfApp<{ status?: DeliveryStatus }>, query) {
      const { listDeliveries } = await import('#webhooks/list-deliveries.ts')
      return listDeliveries(ctx, app, options.status ?? null, query)
    },
    columns: () => [
      ['id', (row) => row.id],
      ['at (UTC)', (row) => minuteCell(row.created_at)],
      ['event', (row) => row.event_type],
      ['external_ref', (row) => row.external_ref],
      ['status', (row) => stateCell(row.delivery_status)],
      ['tries', (row) => row.attempts],
      ['last error', (row) => row.last_error],
    ],
    none: () => 'no deliveries',
    optional: ['tries', 'at (UTC)'],
    codes: ['event', 'status'],
  }),
  'webhook show [event_id]': {
    description: 'one event: its payload, its headers, each attempt with the answer, and the next try',
    examples: ['webhook show evt_17'],
    async run({ ctx, out }, [eventId]) {
      const { showEvent } = await import('#webhooks/show-event.ts')
      const event = await showEvent(ctx, await required(eventId, '<event_id>'))
      const { payload, headers, tries, ...fields } = event
      const banners = await bannersOf(ctx, [event.app_id])
      out.result(event, () => {
        for (const line of banners) out.line(line)
        out.fields(fields)
        out.block(JSON.stringify(payload, null, 2))
        out.fields(headers)
        out.table({
          head: ['try', 'at (UTC)', 'status', 'error', 'ms', 'answer'],
          rows: tries.map((one) => [one.attempt, one.at, one.http_status, one.error, one.duration_ms, one.answer]),
          none: 'no attempt yet',
          optional: ['ms'],
        })
      })
    },
  },
  'webhook retry [event_id]': {
    description: 'deliver an event again, or all failed ones of an app',
    options: [['--failed <app>', 'all failed events of this app'], ['--dry-run', 'only show what would change'], YES],
    examples: ['webhook retry evt_17', 'webhook retry --failed 1 --dry-run', 'webhook retry --failed 1'],
    refuse([eventId], { failed }: RetryOptions) {
      if (failed !== undefined && eventId !== undefined)
        throw new UsageError('name one event or --failed <app>, not both')
    },
    async run(session, [eventId], options: RetryOptions) {
      if (options.failed !== undefined) await retryAll(session, options.failed, options)
      else await changeIn(session, options, (target) => retryOne(target, eventId))
    },
  },
  'webhook test [app]': {
    description: "send a signed test event to an app's receiver now, and show its answer",
    examples: ['webhook test 1'],
    async run({ ctx, out, caller, pickApp }, [named]) {
      const { sendTestEvent } = await import('#webhooks/send-test-event.ts')
      const app = await pickApp(named)
      const answer = await sendTestEvent(ctx, caller, app)
      printOf(out, app, answer)
      if (!answer.delivered) await fail('provider_error', 'the receiver did not take the event')
    },
  },
}

type RetryOptions = Consent & Texts<'failed'>

async function retryOne(session: Session, eventId: string | undefined): Promise<void> {
  const { retryEvent } = await import('#webhooks/retry-event.ts')
  const { presentDelivery } = await import('#webhooks/list-deliveries.ts')
  const input = { event_id: await required(eventId, '<event_id>') }
  const event = await performAs(session, retryEvent, input, {})
  const banners = await bannersOf(session.ctx, [event.appId])
  const lines = [...banners, `evt_${event.id} is due again`].join('\n')
  session.out.result(presentDelivery(event), () => session.out.lines(lines))
}

async function retryAll({ ctx, out, caller, pickApp }: Session, named: string, options: RetryOptions): Promise<void> {
  const { countFailed, retryFailed } = await import('#webhooks/retry-event.ts')
  const app = await pickApp(named)
  const failed = await countFailed(ctx, app)
  if (options.dryRun) {
    out.result({ dry_run: true, failed }, () =>
      out.line(`${banner(app)}: ${counted(failed, 'event')} would be due again`),
    )
    return
  }
  await goAhead(options.yes, `Deliver ${counted(failed, 'failed event')} of ${banner(app)} again?`)
  const answer = await retryFailed(ctx, caller, app)
  out.result(answer, () => out.line(`${banner(app)}: due again: ${counted(answer.retried, 'event')}`))
}
