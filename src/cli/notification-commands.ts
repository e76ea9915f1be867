import type { Command } from 'commander'
import { withExamples } from './examples.ts'
import { inSession } from './session.ts'

/** `notification …`: what providers told that paid nothing and somebody should see. */
export function registerNotificationCommands(program: Command): void {
  const list = program
    .command('notification')
    .description('what payment providers told us that needs a look')
    .command('list')
    .description('notifications that do not fit what was opened, and refunds made at the provider, newest first')
    .option('--app <app>', 'only of this app')
    .action(async (options: { app?: string }, command: Command) => {
      await inSession(command, async ({ ctx, out, app: pick }) => {
        const { listNotifications } = await import('#transactions/list-notifications.ts')
        const shown = await listNotifications(ctx, options.app === undefined ? null : (await pick(options.app)).id)
        out.result(shown, () => {
          const rows = shown.map((event) => [
            event.received_at,
            event.provider,
            event.outcome,
            event.transaction_id,
            event.note,
          ])
          out.table({
            head: ['at (UTC)', 'provider', 'outcome', 'transaction', 'note'],
            rows,
            none: 'Nothing needs a look.',
          })
        })
      })
    })
  withExamples(list, 'notification list', 'notification list --app 1 --json')
}
