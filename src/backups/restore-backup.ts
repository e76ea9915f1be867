import { openDatabase, type Database, type Target } from '#db/connect.ts'
import { pendingMigrations } from '#db/migrate.ts'
import { isHalfRestored, markHalfRestored, markRestored } from '#db/unfinished-restore.ts'
import { AppError } from '#shared/errors.ts'
import type { StoredBackup } from './backup-folder.ts'
import { compareContents, type Comparison } from './compare-contents.ts'
import type { Manifest } from './manifest.ts'
import { listSeenDaemons } from './daemons/store.ts'
import { load, readableBackup, readManifest, type ReadOptions } from './replay.ts'
import {
  asRestorer,
  dropTables,
  hasApps,
  isEmptyDatabase,
  leaveGaps,
  moneyColumnsOf,
  readContents,
  readFamily,
} from './store.ts'

export interface Restored extends Comparison {
  readonly manifest: Manifest
  /** How many migrations the restored database lacks. */
  readonly pending: number
}

const STATEMENT_SECONDS = 3600

/** Fills an empty database as this user of it. */
type Fill = (filler: Target) => Promise<Manifest>

/** A database by its address, or Paygate's own server of a home. */
export type RestoreTarget = { readonly url: string } | { readonly home: string }

/** Restores a backup into an empty database. Throws what `rehearseRestore` throws, before anything is restored. */
export async function restoreBackup(
  backup: StoredBackup,
  place: RestoreTarget,
  options: ReadOptions,
): Promise<Restored> {
  await rehearseRestore(backup, place, options)
  return inDatabase(place, async (db, target) => {
    const fill: Fill = async (filler) => {
      const manifest = await load(readableBackup(backup, 'restoring', options), backup.family, filler)
      await leaveGaps(db)
      return manifest
    }
    const manifest = await ('home' in place ? refillOwn(db, target, fill) : fillEmpty(db, target, fill))
    options.onStep('comparing rows and sums')
    const comparison = compareContents(manifest, await readContents(db, moneyColumnsOf(manifest)))
    return { manifest, ...comparison, pending: (await pendingMigrations(db)).length }
  })
}

/** A program that is killed in the middle leaves a part of a backup, which nobody may take for the whole. */
async function fillEmpty(db: Database, target: Target, fill: Fill): Promise<Manifest> {
  await markHalfRestored(db)
  const manifest = await fill(target)
  await markRestored(db)
  return manifest
}

/** Fills Paygate's own database anew; leaves nothing behind where that fails. */
async function refillOwn(db: Database, target: Target, fill: Fill): Promise<Manifest> {
  await refuseInUse(db)
  // Before anything is dropped.
  await markHalfRestored(db)
  await dropTables(db)
  const manifest = await asRestorer(db, target, fill).catch(async (error: unknown) => {
    await dropTables(db)
    await markRestored(db)
    throw error
  })
  await markRestored(db)
  return manifest
}

/**
 * Reads the backup to its end and restores nothing. Throws `UnreadableBackup`, and `invalid_request` for a database that is not empty or of
 * another family. Paygate's own server makes its tables when it starts, so there it must have no app and no running daemon.
 */
export async function rehearseRestore(
  backup: StoredBackup,
  place: RestoreTarget,
  options: ReadOptions,
): Promise<Manifest> {
  return inDatabase(place, async (db, { database }) => {
    const { family, version } = await readFamily(db)
    if (family !== backup.family)
      throw new AppError('invalid_request', `the backup is of ${backup.family}, and the server is ${family} ${version}`)
    if ('home' in place) await refuseInUse(db)
    else if (await isHalfRestored(db))
      throw new AppError('invalid_request', `${database} holds a part of a backup: create it anew, then restore again`)
    else if (!(await isEmptyDatabase(db)))
      throw new AppError('invalid_request', `the database ${database} is not empty: create a new one for the backup`)
    return readManifest(readableBackup(backup, 'reading', options))
  })
}

async function refuseInUse(db: Database): Promise<void> {
  if (!(await isHalfRestored(db)) && (await hasApps(db)))
    throw new AppError('invalid_request', 'the database of the service has an app: restore before one is created')
  const [seen] = await listSeenDaemons(db)
  if (seen) throw new AppError('invalid_request', `the daemon ${seen.name} was seen ${seen.secondsAgo} s ago: stop it`)
}

async function inDatabase<T>(place: RestoreTarget, work: (db: Database, target: Target) => Promise<T>): Promise<T> {
  const where = 'url' in place ? { databaseUrl: place.url, home: '' } : { databaseUrl: null, home: place.home }
  const options = { statementSeconds: STATEMENT_SECONDS, poolSize: 1, keepsSchema: true, isForRestore: true }
  const { db, close } = await openDatabase(where, options)
  try {
    const [target] = db.targets
    if (!target) throw new AppError('invalid_request', 'the address names no server')
    return await work(db, target)
  } finally {
    await close()
  }
}
