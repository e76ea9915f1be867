import type { Command } from 'commander'
import { withExamples } from './examples.ts'
import { readLimit } from './pages.ts'
import { inSession } from './session.ts'

/** `migrate`, `audit …`: the service itself. */
export function registerOperationsCommands(program: Command): void {
  registerMigrate(program)
  registerAudit(program)
}

function registerMigrate(program: Command): void {
  const migrate = program
    .command('migrate')
    .description('bring the database up to date; stop the daemons of an older version first')
    .action(async (_options: object, command: Command) => {
      await inSession(command, async ({ ctx, out }) => {
        const { runMigrations } = await import('#db/migrate.ts')
        const applied = await runMigrations(ctx.db)
        out.result({ applied }, () =>
          out.line(applied.length === 0 ? 'the database is up to date' : applied.join('\n')),
        )
      })
    })
  withExamples(migrate, 'migrate')
}

interface AuditOptions {
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
    .option('--limit <n>', 'how many at most', '100')
    .action(async (options: AuditOptions, command: Command) => {
      const limit = readLimit(options.limit)
      await inSession(command, async ({ ctx, out, app: pick }) => {
        const { listAudit } = await import('#commands/list-audit.ts')
        const appId = options.app === undefined ? {} : { appId: (await pick(options.app)).id }
        const shown = await listAudit(ctx, { ...appId, limit })
        out.result(shown, () => {
          const rows = shown.map((entry) => [entry.at, entry.actor, entry.action, entry.subject, entry.reason])
          out.table({ head: ['at (UTC)', 'who', 'action', 'subject', 'reason'], rows, none: 'nothing yet' })
        })
      })
    })
  withExamples(list, 'audit list', 'audit list --app 1 --json')
}
