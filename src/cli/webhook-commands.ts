import type { Command } from 'commander'
import { counted } from '#shared/counted.ts'
import type { DeliveryStatus } from '#webhooks/store.ts'
import { goAhead, required } from './ask.ts'
import { minuteCell, stateCell } from './cells.ts'
import { inChange } from './change.ts'
import { withExamples } from './examples.ts'
import { oneOf } from './one-of.ts'
import { gatherRows, readLimit, withPages, type PageOptions } from './pages.ts'
import { banner, bannerOf, inSession, performAs, type Session } from './session.ts'
import { UsageError } from './usage-error.ts'

const STATUSES: readonly DeliveryStatus[] = ['pending', 'delivered', 'failed', 'not_configured']

/** `webhook …`: deliveries to the apps. */
export function registerWebhookCommands(program: Command): void {
  const webhook = program.command('webhook').description('events that were delivered to apps, and those that were not')
  registerList(webhook)
  registerShow(webhook)
  registerRetry(webhook)
  registerTest(webhook)
}

function registerList(webhook: Command): void {
  const list = webhook
    .command('list [app]')
    .description("an app's deliveries, newest first")
    .option('--status <status>', STATUSES.join(', '), oneOf(...STATUSES))
    .action(
      async (
        named: string | undefined,
        options: PageOptions & { status?: DeliveryStatus; limit: string },
        command: Command,
      ) => {
        const limit = readLimit(options.limit)
        await inSession(command, async ({ ctx, out, app: pick }) => {
          const { listDeliveries } = await import('#webhooks/list-deliveries.ts')
          const app = await pick(named)
          const found = await gatherRows(out, limit, options, (page) =>
            listDeliveries(ctx, app, options.status ?? null, page),
          )
          const shown = found.map((event) => ({ app_id: app.id, sandbox: app.isSandbox, ...event }))
          out.result(shown, () => {
            out.line(banner(app))
            out.table({
              head: ['id', 'at (UTC)', 'event', 'external_ref', 'status', 'tries', 'last error'],
              rows: shown.map((row) => [
                row.id,
                minuteCell(row.created_at),
                row.event_type,
                row.external_ref,
                stateCell(row.delivery_status),
                row.attempts,
                row.last_error,
              ]),
              none: 'no deliveries',
              optional: ['tries', 'at (UTC)'],
              codes: ['event', 'status'],
            })
          })
        })
      },
    )
  withPages(list)
  withExamples(list, 'webhook list 1', 'webhook list 1 --status failed')
}

function registerShow(webhook: Command): void {
  const show = webhook
    .command('show [event_id]')
    .description('one event: its payload, its headers, each attempt with the answer, and the next try')
    .action(async (eventId: string | undefined, _options: object, command: Command) => {
      await inSession(command, async ({ ctx, out }) => {
        const { showEvent } = await import('#webhooks/show-event.ts')
        const event = await showEvent(ctx, await required(eventId, '<event_id>'))
        const { payload, headers, tries, ...fields } = event
        const app = await bannerOf(ctx, event.app_id)
        out.result(event, () => {
          out.line(app)
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
      })
    })
  withExamples(show, 'webhook show evt_17')
}

interface RetryOptions {
  readonly failed?: string
  readonly dryRun?: boolean
  readonly yes?: boolean
}

function registerRetry(webhook: Command): void {
  const retry = webhook
    .command('retry [event_id]')
    .description('deliver an event again, or all failed ones of an app')
    .option('--failed <app>', 'all failed events of this app')
    .option('--dry-run', 'only show what would change')
    .option('--yes', 'do not ask')
    .action(async (eventId: string | undefined, options: RetryOptions, command: Command) => {
      if (options.failed !== undefined && eventId !== undefined)
        throw new UsageError('name one event or --failed <app>, not both')
      if (options.failed !== undefined)
        return inSession(command, (session) => retryAll(session, options.failed ?? '', options))
      await inChange(command, async (session) => {
        const [{ retryEvent }, { presentDelivery }] = await Promise.all([
          import('#webhooks/retry-event.ts'),
          import('#webhooks/list-deliveries.ts'),
        ])
        const input = { event_id: await required(eventId, '<event_id>') }
        const event = presentDelivery(await performAs(session, retryEvent, input, {}))
        session.out.result(event, () => session.out.line(`${event.id} is due again`))
      })
    })
  withExamples(retry, 'webhook retry evt_17', 'webhook retry --failed 1 --dry-run', 'webhook retry --failed 1')
}

async function retryAll({ ctx, out, caller, app: pick }: Session, named: string, options: RetryOptions): Promise<void> {
  const { countFailed, retryFailed } = await import('#webhooks/retry-event.ts')
  const app = await pick(named)
  const failed = await countFailed(ctx, app)
  if (options.dryRun) {
    out.result({ dry_run: true, failed }, () => out.line(`${counted(failed, 'event')} would be due again`))
    return
  }
  await goAhead(options.yes, `Deliver ${counted(failed, 'failed event')} of ${banner(app)} again?`)
  const answer = await retryFailed(ctx, caller, app)
  out.result(answer, () => out.line(`due again: ${counted(answer.retried, 'event')}`))
}

function registerTest(webhook: Command): void {
  const test = webhook
    .command('test [app]')
    .description("send a signed test event to an app's receiver now, and show its answer")
    .action(async (named: string | undefined, _options: object, command: Command) => {
      await inSession(command, async ({ ctx, out, caller, app: pick }) => {
        const { sendTestEvent } = await import('#webhooks/send-test-event.ts')
        const app = await pick(named)
        const answer = await sendTestEvent(ctx, caller, app)
        out.result(answer, () => {
          out.line(banner(app))
          out.fields({ ...answer })
        })
        if (!answer.delivered) process.exitCode = 1
      })
    })
  withExamples(test, 'webhook test 1')
}
