import { join } from 'node:path'
import type { Rehearsed } from '#backups/rehearse-upgrade.ts'
import type { PlannedMigration } from '#db/migration-plan.ts'
import type { PageRequest } from '#db/conditions.ts'
import { counted } from '#shared/counted.ts'
import { IDENTITY, openTools, readingOf, storedBackup } from './backup-files.ts'
import { appCell, minuteCell } from './cells.ts'
import { printEffects } from './change.ts'
import { APP, type Commands, type Flags, type OptionLine, type Texts } from './declaration.ts'
import { listOfApps } from './list.ts'
import type { Output } from './output.ts'
import { fail } from './session.ts'
import { listOf } from './table.ts'
import { UsageError } from './usage-error.ts'
import { isOfPackage, PACKAGE_ROOT } from '#setup/systemd-unit.ts'
import type { Upgraded } from '#setup/upgrade-package.ts'

type UpgradeOptions = Texts<'from' | 'identity'> & Flags<'rehearse' | 'withoutBackup' | 'dryRun'>

const ROOT = join(import.meta.dirname, '..', '..')
const WITHOUT_BACKUP: OptionLine = ['--without-backup', 'in production, too: what goes wrong cannot be taken back then']

/** `migrate`, `upgrade`, `audit …`: the service itself. */
export const commands: Commands = {
  migrate: {
    options: [
      ['--plan', 'show what each pending migration does to tables with rows, and apply none'],
      ['--contract', 'run the migrations that daemons of older versions cannot work with'],
      WITHOUT_BACKUP,
    ],
    examples: ['migrate', 'migrate --plan', 'migrate --contract'],
    refuse: async () => (await import('#setup/program-copies.ts')).refuseToMigrateIn(ROOT),
    async run({ ctx, out }, _args, options: Flags<'plan' | 'contract' | 'withoutBackup'>) {
      const { CONTRACTING, EXPANDING, pendingMigrations } = await import('#db/migrate.ts')
      const { planMigrations } = await import('#db/migration-plan.ts')
      const { migrateSafely } = await import('#backups/migrate-safely.ts')
      const isContracting = options.contract === true
      const plan = await planMigrations(ctx.db, isContracting ? CONTRACTING : EXPANDING)
      if (options.plan) {
        out.result({ pending: plan }, () => showPlan(out, plan))
        return
      }
      if (!out.isJson && plan.length > 0) showPlan(out, plan)
      const applied = await migrateSafely(ctx, { isContracting, isWithoutBackup: options.withoutBackup === true })
      out.result({ applied }, () => out.lines(applied.length === 0 ? UP_TO_DATE : applied.join('\n')))
      const waiting = await pendingMigrations(ctx.db, CONTRACTING)
      if (waiting.length > 0)
        out.hint(`once every daemon runs this version: billing-cli migrate --contract (${waiting.join(', ')})`)
    },
  },
  upgrade: {
    options: [
      ['--rehearse', 'run the migrations of this version on a private copy of a backup, with their times'],
      ['--from <file>', 'the backup; default the newest in BILLING_BACKUP_DIR'],
      IDENTITY,
      WITHOUT_BACKUP,
      ['--dry-run', 'only show what the upgrade would do'],
    ],
    examples: [
      'upgrade --dry-run',
      'upgrade --rehearse',
      'upgrade --rehearse --from paygate.sql.gz.age --identity backup-identity',
      'upgrade',
    ],
    print: (out, _args, options: UpgradeOptions) => (options.rehearse ? rehearse(out, options) : upgrade(out, options)),
  },
  'audit list': listOfApps({
    description: 'the audit log, newest first',
    options: [APP],
    examples: ['audit list', 'audit list --app 1 --json'],
    async page({ ctx, app }, query) {
      const { presentAuditEntry } = await import('#commands/present-audit-entry.ts')
      const { listAuditEntries } = await import('#commands/store.ts')
      const { ListQuery, listPage, presentPage } = await import('#http/list-page.ts')
      const { validate } = await import('#shared/validate.ts')
      const list = (page: PageRequest) => listAuditEntries(ctx.db, { ...(app && { appId: app.id }), ...page })
      return presentPage(await listPage('audit', validate(ListQuery, query), list, ({ at }) => at), presentAuditEntry)
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

async function rehearse(out: Output, options: UpgradeOptions): Promise<void> {
  const { rehearseUpgrade } = await import('#backups/rehearse-upgrade.ts')
  const tools = await openTools()
  const backup = await storedBackup(tools, options.from)
  const rehearsed = await rehearseUpgrade(tools, backup, await readingOf(tools.config, out, options))
  out.result(rehearsed, () => showRehearsed(out, rehearsed))
  if (!rehearsed.ok) await fail('invalid_request', 'the rehearsal found a fault: do not upgrade yet')
}

/** Only the package knows how: a clone has no version beside the one that serves. */
async function upgrade(out: Output, options: UpgradeOptions): Promise<void> {
  if (ROOT !== PACKAGE_ROOT)
    throw new UsageError(
      isOfPackage(ROOT)
        ? 'run billing-cli upgrade as root on the machine itself'
        : 'give --rehearse; an installation from a clone is upgraded as docs/operating.md says under Upgrades',
    )
  const { previewInstalled, upgradeInstalled } = await import('#setup/upgrade-installed.ts')
  const tools = await openTools()
  const isWithoutBackup = options.withoutBackup === true
  if (options.dryRun) {
    printEffects(out, { banners: [], ...(await previewInstalled(tools, isWithoutBackup)) })
    return
  }
  const upgraded = await upgradeInstalled(tools, { isWithoutBackup, onStep: (text) => out.progress(text) })
  out.result(upgraded, () => showUpgraded(out, upgraded))
}

function showUpgraded(out: Output, { status, from, to, applied, seconds }: Upgraded): void {
  if (applied.length > 0) out.lines(applied.join('\n'))
  const before = from === null || from === to ? '' : ` instead of ${from}`
  if (status === 'unchanged') out.line(`Version ${to} serves already`)
  else out.line(`Version ${to} serves${before}, ready ${seconds} s after the restart began`)
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

function showRehearsed(out: Output, { migrations, ledger, ok }: Rehearsed): void {
  out.table({
    ...listOf(migrations, [
      ['migration', ({ name }) => name],
      ['seconds', ({ seconds }) => seconds],
    ]),
    right: ['seconds'],
    none: 'the backup is of this version: no migration is pending',
  })
  out.line(`${counted(ledger.checked, 'subscription')} checked, ${counted(ledger.faults.length, 'fault')}`)
  out.table({ head: ['subject', 'discrepancy'], rows: ledger.faults.map(({ subject, fault }) => [subject, fault]) })
  out.line(ok ? 'The upgrade can be made' : 'Do not upgrade: ask the developers, with this output')
}
