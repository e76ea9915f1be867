import type { Command } from 'commander'
import { withExamples } from './examples.ts'
import { inSession } from './session.ts'

const OUTCOMES = ['refused', 'noted'] as const
const MOST = 200

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
        const [{ listNotedEvents }, { formatTimestamp }] = await Promise.all([
          import('#transactions/store.ts'),
          import('#shared/time.ts'),
        ])
        const appId = options.app === undefined ? null : (await pick(options.app)).id
        const events = await listNotedEvents(ctx.db, { appId, outcomes: OUTCOMES, limit: MOST })
        const shown = events.map((event) => ({
          id: event.id,
          received_at: formatTimestamp(event.receivedAt),
          provider: event.provider,
          event_type: event.eventType,
          outcome: event.outcome,
          app_id: event.appId,
          transaction_id: event.transactionId,
          note: event.note,
        }))
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
