import { openDatabase, parseDatabaseUrl, type Database, type Target } from '#db/connect.ts'
import { pendingMigrations } from '#db/migrate.ts'
import { AppError } from '#shared/errors.ts'
import type { StoredBackup } from './backup-folder.ts'
import { compareContents, type Comparison } from './compare-contents.ts'
import type { Manifest } from './manifest.ts'
import { load, readManifest, type ReadableBackup } from './replay.ts'
import { isEmptyDatabase, leaveGaps, moneyColumnsOf, readContents, readFamily } from './store.ts'
import type { ReadOptions } from './verify-backup.ts'

export interface Restored extends Comparison {
  readonly manifest: Manifest
  /** How many migrations the restored database lacks. */
  readonly pending: number
}

const STATEMENT_SECONDS = 3600

/** Restores a backup into the empty database at `url`. Throws what `rehearseRestore` throws, and nothing is restored then. */
export async function restoreBackup(backup: StoredBackup, url: string, options: ReadOptions): Promise<Restored> {
  await rehearseRestore(backup, url, options)
  return inDatabase(url, async (db, target) => {
    const manifest = await load(readingOf(backup, 'restoring', options), backup.family, target)
    options.onStep('comparing rows and sums')
    const comparison = compareContents(manifest, await readContents(db, moneyColumnsOf(manifest)))
    await leaveGaps(db)
    return { manifest, ...comparison, pending: (await pendingMigrations(db)).length }
  })
}

/**
 * Reads the backup to its end and restores nothing. Throws `UnreadableBackup`, and `invalid_request` for a database that is not empty or of
 * another family.
 */
export async function rehearseRestore(backup: StoredBackup, url: string, options: ReadOptions): Promise<Manifest> {
  return inDatabase(url, async (db, { database }) => {
    const { family, version } = await readFamily(db)
    if (family !== backup.family)
      throw new AppError('invalid_request', `the backup is of ${backup.family}, and the server is ${family} ${version}`)
    if (!(await isEmptyDatabase(db)))
      throw new AppError('invalid_request', `the database ${database} is not empty: create a new one for the backup`)
    return readManifest(readingOf(backup, 'reading', options))
  })
}

async function inDatabase<T>(url: string, work: (db: Database, target: Target) => Promise<T>): Promise<T> {
  const [target] = parseDatabaseUrl(url)
  if (!target) throw new AppError('invalid_request', 'the address names no server')
  const options = { statementSeconds: STATEMENT_SECONDS, poolSize: 1 }
  const { db, close } = await openDatabase({ databaseUrl: url, home: '' }, options)
  try {
    return await work(db, target)
  } finally {
    await close()
  }
}

function readingOf({ file, bytes }: StoredBackup, verb: string, { identities, onStep }: ReadOptions): ReadableBackup {
  return { file, identities, onRead: (read) => onStep(`${verb} ${Math.floor((read / bytes) * 100)} %`) }
}
