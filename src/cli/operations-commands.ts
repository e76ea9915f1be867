import type { PlannedMigration } from '#db/migration-plan.ts'
import { appCell, minuteCell } from './cells.ts'
import type { Commands } from './declaration.ts'
import { listOfApps } from './list.ts'
import type { Output } from './output.ts'
import { listOf } from './table.ts'

/** `migrate`, `audit …`: the service itself. */
export const commands: Commands = {
  migrate: {
    options: [['--plan', 'show what each pending migration does to tables with rows, and apply none']],
    examples: ['migrate', 'migrate --plan'],
    async run({ ctx, out }, _args, options: { readonly plan?: true }) {
      const { runMigrations } = await import('#db/migrate.ts')
      const { planMigrations } = await import('#db/migration-plan.ts')
      const plan = await planMigrations(ctx.db)
      if (options.plan) {
        out.result({ pending: plan }, () => showPlan(out, plan))
        return
      }
      if (!out.isJson && plan.length > 0) showPlan(out, plan)
      const applied = await runMigrations(ctx.db)
      out.result({ applied }, () => out.lines(applied.length === 0 ? UP_TO_DATE : applied.join('\n')))
    },
  },
  'audit list': listOfApps({
    description: 'the audit log, newest first',
    examples: ['audit list', 'audit list --app 1 --json'],
    async page({ ctx, app }, { limit, cursor }) {
      const { listAudit, presentAuditEntry } = await import('#commands/list-audit.ts')
      const { pageBy, parseCursor, presentPage } = await import('#http/page-of.ts')
      const filter = { ...(app && { appId: app.id }), below: parseCursor(cursor), limit: Number(limit) + 1 }
      return presentPage(
        pageBy(await listAudit(ctx, filter), Number(limit), ({ at }) => at),
        presentAuditEntry,
      )
    },
    columns: () => [
      ['at (UTC)', (row) => minuteCell(row.at)],
      ['who', (row) => row.actor],
      ['app', appCell],
      ['action', (row) => row.action],
      ['subject', (row) => row.subject],
      ['reason', (row) => row.reason],
    ],
    none: () => 'nothing yet',
    optional: ['app'],
    codes: ['action'],
  }),
}

const UP_TO_DATE = 'the database is up to date'

/** What takes time, so that operators can choose the hour. */
function showPlan(out: Output, plan: readonly PlannedMigration[]): void {
  const works = plan.flatMap(({ name, tables }) => tables.map((work) => ({ name, ...work })))
  out.table({
    ...listOf(works, [
      ['migration', (work) => work.name],
      ['table', (work) => work.table],
      ['rows', (work) => work.rows.toLocaleString('en')],
      ['steps', (work) => work.steps.join(', ')],
      ['takes about', (work) => `${work.seconds} s`],
    ]),
    none: plan.length === 0 ? UP_TO_DATE : `pending: ${plan.length}, and no table with rows changes`,
  })
}
