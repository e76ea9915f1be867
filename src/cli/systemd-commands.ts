import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { writeInstalled, type InstalledFile } from '#setup/files.ts'
import type { Commands, Flags } from './declaration.ts'
import type { Output } from './output.ts'
import {
  CLI_FILE,
  CREDENTIALS_FOLDER,
  ENVIRONMENT_FILE,
  hiddenMessage,
  isHidden,
  isOfPackage,
  renderCli,
  SAMPLE_ENVIRONMENT,
  UNIT_FOLDER,
  type InstallPaths,
} from '#setup/systemd-unit.ts'
import { DAEMON_UNIT, renderUnits } from '#setup/units.ts'
import { UsageError } from './usage-error.ts'

type InstallOptions = Flags<'dryRun' | 'print'> & { readonly prefix: string }

/** `service …`: Paygate as a service of systemd. */
export const commands: Commands = {
  'service install': {
    description:
      'write the units of the daemon and of the daily backup, the settings to fill in, an encryption key, a token for metrics and a billing-cli for root; keeps what is there',
    options: [
      ['--dry-run', 'only say what would be written'],
      ['--print', 'print the unit and write nothing'],
      ['--prefix <folder>', 'write below this folder instead of /', ''],
    ],
    examples: ['service install --dry-run', 'service install', 'service install --print'],
    async print(out, _args, options: InstallOptions) {
      const paths = { root: join(import.meta.dirname, '..', '..'), prefix: options.prefix }
      if (options.print) {
        const unit = renderUnits(paths).find(({ name }) => name === DAEMON_UNIT)?.content ?? ''
        out.result({ unit }, () => out.lines(unit))
        return
      }
      refuseHidden(paths)
      const files = await plannedFiles(paths)
      if (!options.dryRun) for (const file of files) if (file.action !== 'kept') writeInstalled(paths.prefix, file)
      const written = files.map(({ path, action }) => ({ path, action }))
      out.result({ dry_run: options.dryRun === true, files: written }, () => show(out, options, written))
    },
  },
}

type Action = 'written' | 'kept'

interface PlannedFile extends InstalledFile {
  readonly action: Action
}

/** The unit and the program are written again by each run; settings and keys that exist are kept. */
async function plannedFiles(paths: InstallPaths): Promise<PlannedFile[]> {
  const { randomBytes } = await import('node:crypto')
  const kept = (path: string): Action => (existsSync(join(paths.prefix, path)) ? 'kept' : 'written')
  const keyFile = join(CREDENTIALS_FOLDER, 'BILLING_ENCRYPTION_KEYS')
  const key = `k1:${randomBytes(32).toString('base64')}\n`
  // Without one nobody can read /metrics behind a proxy, not even watch.
  const tokenFile = join(CREDENTIALS_FOLDER, 'BILLING_METRICS_TOKEN')
  const token = `${randomBytes(32).toString('hex')}\n`
  return [
    ...renderUnits(paths).map(({ name, content }): PlannedFile => {
      return { path: join(UNIT_FOLDER, name), content, mode: 0o644, action: 'written' }
    }),
    { path: CLI_FILE, content: renderCli(paths), mode: 0o755, action: 'written' },
    { path: ENVIRONMENT_FILE, content: SAMPLE_ENVIRONMENT, mode: 0o644, action: kept(ENVIRONMENT_FILE) },
    { path: keyFile, content: key, mode: 0o600, action: kept(keyFile) },
    { path: tokenFile, content: token, mode: 0o600, action: kept(tokenFile) },
  ]
}

function refuseHidden({ root }: InstallPaths): void {
  if (isOfPackage(root)) throw new UsageError('the package brings the units: run billing-cli setup')
  if (isHidden(root)) throw new UsageError(hiddenMessage(root))
}

function show(out: Output, { dryRun }: InstallOptions, files: readonly { path: string; action: Action }[]): void {
  const words = { written: dryRun ? 'would be written' : 'written', kept: 'is there, and kept' }
  out.table({ head: ['file', ''], rows: files.map(({ path, action }) => [path, words[action]]) })
  out.line('Then, as root:')
  out.line(`1. fill in ${ENVIRONMENT_FILE}`)
  out.line('2. write mysql://user:password@host:3306/paygate into')
  out.line(`   ${CREDENTIALS_FOLDER}/BILLING_DATABASE_URL, mode 0600`)
  out.line('3. keep a copy of BILLING_ENCRYPTION_KEYS elsewhere: billing-cli key export')
  out.line('4. billing-cli migrate')
  out.line('5. systemctl daemon-reload')
  out.line('   systemctl enable --now billing-daemon billing-backup.timer')
  out.line('6. billing-cli doctor')
  out.line('Each further secret (BILLING_SMTP_URL, BILLING_RELAY_SECRET) is a file')
  out.line('there too; run this again when you add one.')
}
