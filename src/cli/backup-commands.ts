import type { BackedUp } from '#backups/back-up.ts'
import type { RestoreTarget, Restored } from '#backups/restore-backup.ts'
import type { Verified } from '#backups/verify-backup.ts'
import type { Config } from '#config/config.ts'
import { counted } from '#shared/counted.ts'
import { drawing, IDENTITY, openTools, pickBackup, readingOf, storedBackup } from './backup-files.ts'
import { minuteCell } from './cells.ts'
import type { Commands, Flags, Texts } from './declaration.ts'
import type { Output } from './output.ts'
import { fail } from './session.ts'
import { listOf } from './table.ts'
import { UsageError } from './usage-error.ts'

/** `backup …`: encrypted copies of the database. */
export const commands: Commands = {
  'backup create': {
    description: 'write the database, compressed and encrypted, while the service runs',
    options: [
      ['--to <dir>', 'the folder; default BILLING_BACKUP_DIR'],
      ['--recipient <age1…>', 'the public key of age that it is encrypted to; default BILLING_BACKUP_RECIPIENT'],
      ['--pipe <command>', 'give it to this command of the shell, and write no file'],
    ],
    examples: [
      'backup create',
      "backup create --pipe 'rclone rcat remote:paygate.age'",
      'backup create --to /mnt/backups',
    ],
    async print(out, _args, options: CreateOptions) {
      const { removed, manifest, ...written } = await create(out, options)
      const { schema, rows, sums } = manifest
      const created = { ...written, taken_at: timestampOf(manifest.taken_at), schema, rows, sums }
      out.result(created, () => {
        showCreated(out, created, removed)
        const file = options.to === undefined ? '' : ' FILE'
        if (created.file !== null) out.line(`Next: billing-cli backup verify${file}`)
      })
    },
  },
  'backup list': {
    description: 'the backups in BILLING_BACKUP_DIR, newest first, and when each was verified',
    examples: ['backup list', 'backup list --json'],
    async print(out) {
      const { loadConfig } = await import('#config/config.ts')
      const { listBackups } = await import('#backups/backup-folder.ts')
      const { formatTimestamp, formatTimestampOrNull } = await import('#shared/time.ts')
      const { folder } = loadConfig().backup
      const rows = (await listBackups(folder)).map(({ file, bytes, takenAt, schema, verifiedAt }) => ({
        file,
        bytes,
        taken_at: formatTimestamp(takenAt),
        schema,
        verified_at: formatTimestampOrNull(verifiedAt),
      }))
      const columns = listOf(rows, [
        ['file', ({ file }) => file.slice(folder.length + 1)],
        ['bytes', ({ bytes }) => bytes.toLocaleString('en')],
        ['taken (UTC)', ({ taken_at }) => minuteCell(taken_at)],
        ['verified (UTC)', ({ verified_at }) => minuteCell(verified_at)],
      ])
      const none = `no backup in ${folder}`
      out.result(rows, () => out.table({ ...columns, right: ['bytes'], optional: ['taken (UTC)'], none }))
    },
  },
  'backup verify [file]': {
    description:
      'restore a backup, by default the newest, into a private server, and check it there; exit 1 if it is bad',
    options: [IDENTITY],
    examples: ['backup verify', 'backup verify paygate.sql.gz.age --identity backup-identity'],
    async print(out, [named], options: Texts<'identity'>) {
      const { verifyBackup } = await import('#backups/verify-backup.ts')
      const { UnreadableBackup } = await import('#backups/replay.ts')
      const tools = await openTools()
      const backup = await storedBackup(tools, named)
      try {
        const verified = await verifyBackup(tools, backup, await readingOf(tools.config, out, options))
        printVerified(out, backup.file, verified)
        if (!verified.ok) await fail('invalid_request', 'the backup is not good')
      } catch (error) {
        if (error instanceof UnreadableBackup && error.isDamaged) printVerified(out, backup.file, UNREADABLE)
        throw error
      }
    },
  },
  'backup restore [file]': {
    description: 'restore a backup into an empty database, and say what to do then',
    options: [
      [
        '--into <url>',
        'the empty database, as BILLING_DATABASE_URL, or embedded-service; without a password, BILLING_CLI_DATABASE_PASSWORD has it, or it is asked for',
      ],
      IDENTITY,
      ['--dry-run', 'only read the backup to its end, and see whether the database is empty'],
    ],
    examples: ['backup restore paygate.sql.gz.age --into mysql://paygate@127.0.0.1:3306/paygate'],
    async print(out, [named], options: RestoreOptions) {
      const { rehearseRestore, restoreBackup } = await import('#backups/restore-backup.ts')
      const { required } = await import('./ask.ts')
      const tools = await openTools()
      const file = await pickBackup(tools.config, named)
      const into = await required(options.into, '--into', 'Into which empty database? mysql://user@host:port/database:')
      const backup = await storedBackup(tools, file)
      const reading = await readingOf(tools.config, out, options)
      if (options.dryRun) {
        const { taken_at, schema, rows } = await inPlace(tools.config, into, (place) =>
          rehearseRestore(backup, place, reading),
        )
        const would = { dry_run: true, file: backup.file, taken_at: timestampOf(taken_at), schema, rows }
        out.result(would, () => out.line(`It can be restored: as of ${would.taken_at} UTC, ${totalOf(rows)} rows`))
        return
      }
      const restored = await inPlace(tools.config, into, (place) => restoreBackup(backup, place, reading))
      printRestored(out, backup.file, restored, tools.keyring.ids)
      if (!restored.rowsEqual || !restored.sumsEqual) await fail('invalid_request', 'it differs from the backup')
    },
  },
}

/** Works on the database that `--into` names: of the service's own server, or at an address. */
async function inPlace<T>(
  { databaseUrl, home }: Pick<Config, 'databaseUrl' | 'home'>,
  into: string,
  work: (place: RestoreTarget) => Promise<T>,
): Promise<T> {
  const { EMBEDDED } = await import('#setup/answers.ts')
  if (into !== EMBEDDED) {
    const { withPassword } = await import('./database-password.ts')
    return withPassword('--into', into, (url) => work({ url }))
  }
  if (databaseUrl === null) return work({ home })
  throw new UsageError(`the service does not use ${EMBEDDED}: give --into the address of BILLING_DATABASE_URL`)
}

type RestoreOptions = Texts<'into' | 'identity'> & Flags<'dryRun'>
type CreateOptions = Texts<'to' | 'recipient' | 'pipe'>

/** Opened without its migrations: a backup is of the database as it is. */
async function create(out: Output, { to, recipient, pipe }: CreateOptions): Promise<BackedUp> {
  const { loadConfig } = await import('#config/config.ts')
  const { openDatabase } = await import('#db/connect.ts')
  const { backUp } = await import('#backups/back-up.ts')
  const { systemClock } = await import('#shared/time.ts')
  const config = loadConfig()
  const { db, close } = await openDatabase(config, { poolSize: 1, keepsSchema: true })
  const draw = drawing(out)
  const onProgress = (table: string, rows: number, expected: number): void => {
    const share = expected === 0 ? '' : `, ${Math.min(99, Math.floor((rows / expected) * 100))} %`
    draw(`${table}: ${rows.toLocaleString('en')} rows${share}`)
  }
  try {
    return await backUp({ db, config, clock: systemClock }, { folder: to, recipient, pipe, onProgress })
  } finally {
    await close()
  }
}

type Created = Pick<BackedUp, 'file' | 'bytes' | 'sha256'> & Pick<BackedUp['manifest'], 'schema' | 'rows'>

function showCreated(out: Output, { file, bytes, sha256, schema, rows }: Created, removed: readonly string[]): void {
  out.fields({ file, bytes: bytes.toLocaleString('en'), sha256, schema, rows: totalOf(rows) })
  for (const old of removed) out.line(`removed ${old}, which is older than BILLING_BACKUP_KEEP`)
}

function totalOf(rows: Readonly<Record<string, number>>): string {
  return Object.values(rows)
    .reduce((sum, count) => sum + count, 0)
    .toLocaleString('en')
}

/** The manifest's time as every command prints times. */
function timestampOf(takenAt: string): string {
  return takenAt.slice(0, 19).replace('T', ' ')
}

/** What can be said of a file that nothing could be restored from. */
const UNREADABLE: Verified = {
  ok: false,
  ledger: { checked: 0, faults: [] },
  rowsEqual: false,
  sumsEqual: false,
  seconds: 0,
}

function printVerified(out: Output, file: string, { ok, ledger, rowsEqual, sumsEqual, seconds }: Verified): void {
  out.result({ file, ok, ledger, rows_equal: rowsEqual, sums_equal: sumsEqual, seconds }, () => {
    out.fields({
      file,
      result: ok ? 'good' : 'BAD',
      rows: rowsEqual ? 'as in the manifest' : 'DIFFER from the manifest',
      sums: sumsEqual ? 'as in the manifest' : 'DIFFER from the manifest',
      ledger: `${counted(ledger.checked, 'subscription')} checked, ${counted(ledger.faults.length, 'fault')}`,
      seconds,
    })
    out.table({ head: ['subject', 'discrepancy'], rows: ledger.faults.map(({ subject, fault }) => [subject, fault]) })
  })
}

function printRestored(out: Output, file: string, restored: Restored, keyIds: readonly string[]): void {
  const { manifest, rowsEqual, sumsEqual, pending } = restored
  const missing = manifest.keys.filter((id) => !keyIds.includes(id))
  const takenAt = timestampOf(manifest.taken_at)
  const next = nextSteps(`${takenAt} UTC`, pending, missing)
  const { schema, keys } = manifest
  const answer = { file, taken_at: takenAt, schema, rows_equal: rowsEqual, sums_equal: sumsEqual, keys }
  out.result({ ...answer, missing_keys: missing, pending_migrations: pending, next }, () => {
    out.line(`Restored as of ${takenAt} UTC: rows and sums ${rowsEqual && sumsEqual ? 'agree' : 'DIFFER'}`)
    out.table({ head: ['', 'what to do now'], rows: next.map((step, index) => [index + 1, step]) })
  })
}

/** What the backup cannot know, and who does. */
function nextSteps(takenAt: string, pending: number, missing: readonly string[]): string[] {
  return [
    'make sure that the old daemon never starts again: two would send everything twice',
    ...(missing.length === 0 ? [] : [`add the keys ${missing.join(', ')} to BILLING_ENCRYPTION_KEYS, from key export`]),
    `set BILLING_DATABASE_URL to the database${pending === 0 ? '' : `, then billing-cli migrate (${pending} pending)`}`,
    'billing-cli ledger verify and billing-cli doctor, then start the daemon',
    'billing-cli reconcile: finds payments of checkouts that were open then',
    `what began after ${takenAt} is lost: compare payments and refunds since then at each provider and on the banks' statements, and forward the banks' mails again`,
    'sellers ask again for subscriptions that changed since then',
  ]
}
