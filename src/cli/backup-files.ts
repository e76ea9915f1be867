import { existsSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import type { StoredBackup } from '#backups/backup-folder.ts'
import type { ReadOptions } from '#backups/replay.ts'
import type { Tools } from '#backups/verify-backup.ts'
import type { Config } from '#config/config.ts'
import type { OptionLine } from './declaration.ts'
import type { Output } from './output.ts'
import { fail } from './session.ts'

export const IDENTITY: OptionLine = [
  '--identity <file>',
  'the private key of age that opens it; default BILLING_BACKUP_IDENTITY',
]

/** How often the progress is drawn. */
const DRAW_MS = 100

/** What commands work with that need no configured database. */
export async function openTools(): Promise<Tools> {
  const [{ loadConfig }, { openKeyring }, { openLog }, { systemClock }] = await Promise.all([
    import('#config/config.ts'),
    import('#open-context.ts'),
    import('#shared/log.ts'),
    import('#shared/time.ts'),
  ])
  const config = { ...loadConfig(), logLevel: 'silent' as const }
  const log = openLog(config.logLevel, { thread: 'cli' })
  return { config, clock: systemClock, log, keyring: openKeyring(config), wakeSender: () => {}, count: () => {} }
}

/** The backup that a path, or a name in the folder, stands for; without one, the newest of the folder. */
export async function storedBackup({ config, clock }: Tools, named: string | undefined): Promise<StoredBackup> {
  const { newestBackup, readBackup } = await import('#backups/backup-folder.ts')
  const { folder } = config.backup
  if (named === undefined) {
    const newest = await newestBackup(folder, clock.now())
    return newest ?? fail('not_found', `no backup in ${folder}: run billing-cli backup create`)
  }
  const path = existsSync(named) ? resolve(named) : join(folder, named)
  if (!existsSync(path)) return fail('not_found', `no file ${named}, here or in ${folder}`)
  return (await readBackup(path)) ?? fail('invalid_request', `${path} is no backup of Paygate`)
}

/** The file that is named; on a terminal one of the folder is picked if none is. */
export async function pickBackup({ backup: { folder } }: Config, named: string | undefined): Promise<string> {
  const { listBackups } = await import('#backups/backup-folder.ts')
  const { requiredChoice } = await import('./ask.ts')
  return requiredChoice(named, '<file>', 'Which backup?', async () =>
    (await listBackups(folder)).map(({ file, verifiedAt }) => ({
      value: file,
      name: `${basename(file)}${verifiedAt === null ? ', not verified' : ''}`,
    })),
  )
}

/** How a backup is read: with which keys, and what is shown meanwhile. */
export async function readingOf(
  { backup }: Config,
  out: Output,
  { identity = backup.identityFile ?? undefined }: { readonly identity?: string },
): Promise<ReadOptions> {
  if (identity === undefined)
    return fail(
      'invalid_request',
      'the private key that opens it is needed: --identity FILE, or set BILLING_BACKUP_IDENTITY',
    )
  const { readIdentities } = await import('#backups/encryption.ts')
  return { identities: readIdentities(identity), onStep: drawing(out) }
}

/** Draws the progress, a few times a second. */
export function drawing(out: Output): (text: string) => void {
  let last = -Infinity
  return (text) => {
    if (performance.now() - last < DRAW_MS) return
    last = performance.now()
    out.progress(text)
  }
}
