import type { Command } from 'commander'
import { required } from './ask.ts'
import { withExamples } from './examples.ts'
import { banner, inSession } from './session.ts'

/** `app export` and `subscription import`, added to the groups that are there. */
export function registerExport(app: Command): void {
  const command = app
    .command('export [app]')
    .description("write all of an app's data into a folder, as JSON Lines and CSV, without secrets")
    .option('--dir <folder>', 'the target folder; created if it does not exist')
    .action(async (named: string | undefined, options: { dir?: string }, self: Command) => {
      await inSession(self, async ({ ctx, out, app: pick }) => {
        const { exportApp } = await import('#reports/export-app.ts')
        const found = await pick(named)
        const folder = await required(options.dir, '--dir', 'Folder:')
        const counts = await exportApp(ctx, found, folder, (name, rows) => out.progress(`${name}: ${rows} rows`))
        out.result(counts, () => {
          out.line(banner(found))
          out.table({ head: ['table', 'rows'], rows: Object.entries(counts), none: 'nothing' })
        })
      })
    })
  withExamples(command, 'app export 1 --dir ./export-2026-11')
}

export function registerImport(subscription: Command): void {
  const command = subscription
    .command('import [app] [file]')
    .description('import subscriptions sold elsewhere, from CSV; end users who already have one are skipped')
    .option('--dry-run', 'only show what each line would do')
    .action(
      async (named: string | undefined, file: string | undefined, options: { dryRun?: boolean }, self: Command) => {
        await inSession(self, async ({ ctx, out, caller, app: pick }) => {
          const [{ importSubscriptions }, { readTextFile }] = await Promise.all([
            import('#subscriptions/import-subscriptions.ts'),
            import('./read-file.ts'),
          ])
          const found = await pick(named)
          const csv = readTextFile(await required(file, '<file>'))
          const onLine = (done: number, of: number) => {
            if (done % 100 === 0) out.progress(`${done} of ${of} lines`)
          }
          const report = await importSubscriptions(ctx, caller, found, csv, { dryRun: options.dryRun ?? false, onLine })
          out.result(report, () => {
            out.line(banner(found))
            const rows = report.lines.map((line) => [line.line, line.external_ref, line.result, line.reason])
            out.table({ head: ['line', 'external_ref', 'result', 'reason'], rows, none: 'the file has no lines' })
          })
          if (report.refused > 0) process.exitCode = 1
        })
      },
    )
  withExamples(
    command,
    'subscription import 1 ./subscriptions.csv --dry-run',
    'subscription import 1 ./subscriptions.csv',
  )
}
