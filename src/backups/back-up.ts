import { join, resolve } from 'node:path'
import type { Config } from '#config/config.ts'
import type { Context } from '#context.ts'
import { AppError } from '#shared/errors.ts'
import { backupName, removeDrafts, removeOld } from './backup-folder.ts'
import { createBackup, type CreatedBackup, type CreateOptions } from './create-backup.ts'
import { refuseWrongRecipient } from './encryption.ts'
import { commandSink, fileSink } from './sinks.ts'

export interface BackUpOptions extends Pick<CreateOptions, 'onProgress'> {
  /** The folder, if it differs from the one in the settings. */
  readonly folder?: string | undefined
  readonly recipient?: string | undefined
  /** A command that the backup goes to instead of a folder. */
  readonly pipe?: string | undefined
}

export interface BackedUp extends CreatedBackup {
  /** The older files that were removed. */
  readonly removed: readonly string[]
}

type Source = Pick<Context, 'db' | 'clock'> & { readonly config: Pick<Config, 'backup'> }

/** Makes a backup in the configured place, then removes those that are older than the configured age. */
export async function backUp(source: Source, options: BackUpOptions): Promise<BackedUp> {
  const { backup: settings } = source.config
  const recipient = options.recipient ?? settings.recipient
  if (recipient === null)
    throw new AppError(
      'invalid_request',
      'nobody could read the backup: set BILLING_BACKUP_RECIPIENT, or give --recipient, a public key of age (age-keygen makes one)',
    )
  await refuseWrongRecipient(recipient)
  const folder = resolve(options.folder ?? settings.folder)
  const { pipe, onProgress } = options
  const created = await createBackup(source, {
    recipient,
    onProgress,
    openSink: (label) => (pipe === undefined ? fileSink(join(folder, backupName(label))) : commandSink(pipe)),
  })
  return { ...created, removed: pipe === undefined ? await tidy(source, folder) : [] }
}

async function tidy({ clock, config: { backup } }: Source, folder: string): Promise<readonly string[]> {
  await removeDrafts(folder, clock.now())
  return backup.keepMs === null ? [] : removeOld(folder, clock.now(), backup.keepMs)
}
