import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Commands, Flags } from './declaration.ts'
import type { Output } from './output.ts'
import {
  BACKUP_TIMER_FILE,
  BACKUP_UNIT_FILE,
  CLI_FILE,
  CREDENTIALS_FOLDER,
  ENVIRONMENT_FILE,
  renderBackupTimer,
  renderBackupUnit,
  renderCli,
  renderUnit,
  SAMPLE_ENVIRONMENT,
  UNIT_FILE,
  type InstallPaths,
} from './systemd-unit.ts'
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
        const unit = renderUnit(paths)
        out.result({ unit }, () => out.lines(unit))
        return
      }
      refuseHidden(paths)
      const files = await plannedFiles(paths)
      if (!options.dryRun) for (const file of files) if (file.action !== 'kept') write(paths, file)
      const written = files.map(({ path, action }) => ({ path, action }))
      out.result({ dry_run: options.dryRun === true, files: written }, () => show(out, options, written))
    },
  },
}

type Action = 'written' | 'kept'

interface PlannedFile {
  readonly path: string
  readonly content: string
  readonly mode: number
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
    { path: UNIT_FILE, content: renderUnit(paths), mode: 0o644, action: 'written' },
    { path: BACKUP_UNIT_FILE, content: renderBackupUnit(paths), mode: 0o644, action: 'written' },
    { path: BACKUP_TIMER_FILE, content: renderBackupTimer(), mode: 0o644, action: 'written' },
    { path: CLI_FILE, content: renderCli(paths), mode: 0o755, action: 'written' },
    { path: ENVIRONMENT_FILE, content: SAMPLE_ENVIRONMENT, mode: 0o644, action: kept(ENVIRONMENT_FILE) },
    { path: keyFile, content: key, mode: 0o600, action: kept(keyFile) },
    { path: tokenFile, content: token, mode: 0o600, action: kept(tokenFile) },
  ]
}

function write({ prefix }: InstallPaths, { path, content, mode }: PlannedFile): void {
  const target = join(prefix, path)
  const isSecret = dirname(path) === CREDENTIALS_FOLDER
  try {
    mkdirSync(dirname(target), { recursive: true, mode: isSecret ? 0o700 : 0o755 })
    writeFileSync(target, content, { mode })
    // An existing file keeps its mode, and the umask restricts that of a new one.
    chmodSync(target, mode)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EACCES' || code === 'EPERM')
      throw new Error(`${target} cannot be written: run this as root`, { cause: error })
    throw error
  }
}

/** The unit hides home folders from the daemon. */
function refuseHidden({ root }: InstallPaths): void {
  if (/^\/(home|root|run\/user|tmp|var\/tmp)\//.test(`${root}/`)) {
    throw new UsageError(
      `the service cannot see ${root}: move the project to a folder such as /opt/paygate, and run this again`,
    )
  }
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
