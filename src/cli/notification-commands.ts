import type { Command } from 'commander'
import { appCell, minuteCell, stateCell } from './cells.ts'
import { withExamples } from './examples.ts'
import { gatherRows, readLimit, withPages, type PageOptions } from './pages.ts'
import { inSession, withSandbox } from './session.ts'

/** `notification …`: provider events that paid nothing and need attention. */
export function registerNotificationCommands(program: Command): void {
  const list = program
    .command('notification')
    .description('notifications of payment providers that need attention')
    .command('list')
    .description('notifications that do not fit what was opened, and refunds made at the provider, newest first')
    .option('--app <app>', 'only of this app')
    .action(async (options: PageOptions & { app?: string; limit: string }, command: Command) => {
      const limit = readLimit(options.limit)
      await inSession(command, async ({ ctx, out, app: pick }) => {
        const { listNotifications, presentNotification } = await import('#transactions/list-notifications.ts')
        const appId = options.app === undefined ? null : (await pick(options.app)).id
        const found = await gatherRows(out, limit, options, (page) => listNotifications(ctx, appId, page))
        const shown = await withSandbox(ctx, found.map(presentNotification))
        out.result(shown, () => {
          out.table({
            head: ['at (UTC)', 'app', 'provider', 'outcome', 'transaction', 'note'],
            rows: shown.map((event) => [
              minuteCell(event.received_at),
              appCell(event),
              event.provider,
              stateCell(event.outcome),
              event.transaction_id,
              event.note,
            ]),
            none: 'Nothing needs attention.',
            codes: ['provider', 'outcome'],
          })
        })
      })
    })
  withPages(list)
  withExamples(list, 'notification list', 'notification list --app 1 --json')
}
