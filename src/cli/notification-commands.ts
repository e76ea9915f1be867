import { appCell, minuteCell, stateCell } from './cells.ts'
import { APP, type Commands } from './declaration.ts'
import { listOfApps } from './list.ts'

/** `notification …`: provider events that paid nothing and need attention. */
export const commands: Commands = {
  'notification list': listOfApps({
    description: 'notifications that do not fit what was opened, and refunds made at the provider, newest first',
    options: [APP],
    examples: ['notification list', 'notification list --app 1 --json'],
    async page({ ctx, app }, query) {
      const { listNotifications, presentNotification } = await import('#transactions/list-notifications.ts')
      const { presentPage } = await import('#http/list-page.ts')
      return presentPage(await listNotifications(ctx, app?.id ?? null, query), presentNotification)
    },
    columns: () => [
      ['at (UTC)', (row) => minuteCell(row.received_at)],
      ['app', appCell],
      ['provider', (row) => row.provider],
      ['outcome', (row) => stateCell(row.outcome)],
      ['transaction', (row) => row.transaction_id],
      ['note', (row) => row.note],
    ],
    none: () => 'Nothing needs attention.',
    codes: ['provider', 'outcome'],
  }),
}
