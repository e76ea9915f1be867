import type { Command } from 'commander'
import type { PlannedMigration } from '#db/migration-plan.ts'
import { appCell, minuteCell } from './cells.ts'
import { withExamples } from './examples.ts'
import type { Output } from './output.ts'
import { gatherRows, readLimit, withPages, type PageOptions } from './pages.ts'
import { inSession, withSandbox } from './session.ts'

/** `migrate`, `audit …`: the service itself. */
export function registerOperationsCommands(program: Command): void {
  registerMigrate(program)
  registerAudit(program)
}

const UP_TO_DATE = 'the database is up to date'

function registerMigrate(program: Command): void {
  const migrate = program
    .command('migrate')
    .description('bring the database up to date; stop the daemons of an older version first')
    .option('--plan', 'show what each pending migration does to tables with rows, and apply none')
    .action(async (options: { readonly plan?: true }, command: Command) => {
      await inSession(command, async ({ ctx, out }) => {
        const [{ runMigrations }, { planMigrations }] = await Promise.all([
          import('#db/migrate.ts'),
          import('#db/migration-plan.ts'),
        ])
        const plan = await planMigrations(ctx.db)
        if (options.plan) {
          out.result({ pending: plan }, () => showPlan(out, plan))
          return
        }
        if (!out.isJson && plan.length > 0) showPlan(out, plan)
        const applied = await runMigrations(ctx.db)
        out.result({ applied }, () => out.lines(applied.length === 0 ? UP_TO_DATE : applied.join('\n')))
      })
    })
  withExamples(migrate, 'migrate', 'migrate --plan')
}

/** What takes time, so that operators can choose the hour. */
function showPlan(out: Output, plan: readonly PlannedMigration[]): void {
  const works = plan.flatMap(({ name, tables }) => tables.map((work) => ({ name, ...work })))
  out.table({
    head: ['migration', 'table', 'rows', 'steps', 'takes about'],
    rows: works.map(({ name, table, rows, steps, seconds }) => [
      name,
      table,
      rows.toLocaleString('en'),
      steps.join(', '),
      `${seconds} s`,
    ]),
    none: plan.length === 0 ? UP_TO_DATE : `pending: ${plan.length}, and no table with rows changes`,
  })
}

interface AuditOptions extends PageOptions {
  readonly app?: string
  readonly limit: string
}

function registerAudit(program: Command): void {
  const list = program
    .command('audit')
    .description('who changed what, and why')
    .command('list')
    .description('the audit log, newest first')
    .option('--app <app>', 'only of this app')
    .action(async (options: AuditOptions, command: Command) => {
      const limit = readLimit(options.limit)
      await inSession(command, async ({ ctx, out, app: pick }) => {
        const [{ listAudit, presentAuditEntry }, { pageBy, parseCursor }] = await Promise.all([
          import('#commands/list-audit.ts'),
          import('#http/page-of.ts'),
        ])
        const appId = options.app === undefined ? {} : { appId: (await pick(options.app)).id }
        const entries = await gatherRows(out, limit, options, async (page) => {
          const size = Number(page.limit)
          const found = await listAudit(ctx, { ...appId, below: parseCursor(page.cursor), limit: size + 1 })
          return pageBy(found, size, ({ at }) => at)
        })
        const shown = await withSandbox(ctx, entries.map(presentAuditEntry))
        out.result(shown, () => {
          const rows = shown.map((entry) => [
            minuteCell(entry.at),
            entry.actor,
            appCell(entry),
            entry.action,
            entry.subject,
            entry.reason,
          ])
          out.table({
            head: ['at (UTC)', 'who', 'app', 'action', 'subject', 'reason'],
            rows,
            none: 'nothing yet',
            optional: ['app'],
            codes: ['action'],
          })
        })
      })
    })
  withPages(list)
  withExamples(list, 'audit list', 'audit list --app 1 --json')
}
