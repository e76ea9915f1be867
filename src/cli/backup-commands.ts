import type { BackedUp } from '#backups/back-up.ts'
import type { Progress } from '#backups/create-backup.ts'
import type { Commands, Texts } from './declaration.ts'
import type { Output } from './output.ts'
import { listOf } from './table.ts'
import { minuteCell } from './cells.ts'

/** How often the progress is drawn. */
const DRAW_MS = 100

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
    async print(out, _args, options: CreateFlags) {
      const { removed, manifest, ...written } = await create(out, options)
      const { schema, rows, sums } = manifest
      const created = { ...written, taken_at: await timestampOf(manifest.taken_at), schema, rows, sums }
      out.result(created, () => showCreated(out, created, removed))
    },
  },
  'backup list': {
    description: 'the backups in BILLING_BACKUP_DIR, newest first, and when each was verified',
    examples: ['backup list', 'backup list --json'],
    async print(out) {
      const { loadConfig } = await import('#config.ts')
      const { listBackups } = await import('#backups/backup-folder.ts')
      const { formatTimestamp, formatTimestampOrNull } = await import('#shared/time.ts')
      const { backup } = loadConfig()
      const rows = (await listBackups(backup.folder)).map(({ file, bytes, takenAt, schema, verifiedAt }) => ({
        file,
        bytes,
        taken_at: formatTimestamp(takenAt),
        schema,
        verified_at: formatTimestampOrNull(verifiedAt),
      }))
      out.result(rows, () =>
        out.table({
          ...listOf(rows, [
            ['file', (row) => row.file.slice(backup.folder.length + 1)],
            ['bytes', (row) => row.bytes.toLocaleString('en')],
            ['taken (UTC)', (row) => minuteCell(row.taken_at)],
            ['verified (UTC)', (row) => minuteCell(row.verified_at)],
          ]),
          none: `no backup in ${backup.folder}`,
        }),
      )
    },
  },
}

type CreateFlags = Texts<'to' | 'recipient' | 'pipe'>

/** Opened without its migrations: a backup is of the database as it is. */
async function create(out: Output, { to, recipient, pipe }: CreateFlags): Promise<BackedUp> {
  const { loadConfig } = await import('#config.ts')
  const { openDatabase } = await import('#db/connect.ts')
  const { backUp } = await import('#backups/back-up.ts')
  const { systemClock } = await import('#shared/time.ts')
  const config = loadConfig()
  const { db, close } = await openDatabase(config, { poolSize: 1, keepsSchema: true })
  try {
    const source = { db, config, clock: systemClock }
    return await backUp(source, { folder: to, recipient, pipe, onProgress: drawn(out) })
  } finally {
    await close()
  }
}

function drawn(out: Output): Progress {
  let last = 0
  return (table, rows, expected) => {
    if (performance.now() - last < DRAW_MS) return
    last = performance.now()
    const share = expected === 0 ? '' : `, ${Math.min(99, Math.floor((rows / expected) * 100))} %`
    out.progress(`${table}: ${rows.toLocaleString('en')} rows${share}`)
  }
}

async function timestampOf(iso: string): Promise<string> {
  const { formatTimestamp } = await import('#shared/time.ts')
  return formatTimestamp(new Date(iso))
}

interface Created {
  readonly file: string | null
  readonly bytes: number
  readonly sha256: string
  readonly schema: string
  readonly rows: Readonly<Record<string, number>>
}

function showCreated(out: Output, { file, bytes, sha256, schema, rows }: Created, removed: readonly string[]): void {
  const total = Object.values(rows).reduce((sum, count) => sum + count, 0)
  out.fields({
    file: file ?? '(none)',
    bytes: bytes.toLocaleString('en'),
    sha256,
    schema,
    rows: total.toLocaleString('en'),
  })
  for (const old of removed) out.line(`removed ${old}, which is older than BILLING_BACKUP_KEEP`)
  if (file !== null) out.line('Verify it: billing-cli backup verify')
}
