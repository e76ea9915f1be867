import type { Context } from '#context.ts'
import { CONTRACTING, EXPANDING, pendingMigrations, phaseOf, runMigrations, type Migrations } from '#db/migrate.ts'
import { AppError } from '#shared/errors.ts'
import { DAY_MS, formatUtc } from '#shared/time.ts'
import { newestVerified } from './backup-folder.ts'
import { listSeenDaemons, type SeenDaemon } from './daemons/store.ts'
import { hasApps } from './store.ts'

export interface MigrateOptions {
  /** Runs the migrations that remove what older versions use, instead of those that expand the schema. */
  readonly isContracting: boolean
  /** Migrates without a backup, too. */
  readonly isWithoutBackup: boolean
  /** All migrations by default; tests pass their own. */
  readonly expanding?: Migrations
  readonly contracting?: Migrations
}

type Source = Pick<Context, 'db' | 'config' | 'clock'>

/**
 * Runs the expanding migrations, or the contracting ones; returns the names of those that were applied. Throws what `safelyPending` throws,
 * before anything changes.
 */
export async function migrateSafely(source: Source, options: MigrateOptions): Promise<string[]> {
  await safelyPending(source, options)
  return runMigrations(source.db, migrationsOf(options).chosen)
}

/**
 * The names of the migrations that `migrateSafely` would apply now. Throws `invalid_request` if a running daemon could not work with the
 * result, or, in production, if there is no verified backup from the last day.
 */
export async function safelyPending(source: Source, options: MigrateOptions): Promise<string[]> {
  const { db } = source
  const { chosen, expanding } = migrationsOf(options)
  const pending = await pendingMigrations(db, chosen)
  if (options.isContracting && (await pendingMigrations(db, expanding)).length > 0)
    throw new AppError('invalid_request', 'run billing-cli migrate first: expanding migrations are pending')
  if (pending.length > 0) {
    await refuseWhileSeen(
      source,
      chosen.filter(({ name }) => pending.includes(name)),
    )
    if (!options.isWithoutBackup) await refuseWithoutBackup(source)
  }
  return pending
}

function migrationsOf({ isContracting, expanding = EXPANDING, contracting = CONTRACTING }: MigrateOptions): {
  readonly chosen: Migrations
  readonly expanding: Migrations
} {
  return { chosen: isContracting ? contracting : expanding, expanding }
}

async function refuseWhileSeen({ db }: Source, pending: Migrations): Promise<void> {
  const seen = (await listSeenDaemons(db)).find((daemon) => breaking(daemon, pending) !== undefined)
  if (!seen) return
  const { name, secondsAgo } = seen
  throw new AppError(
    'invalid_request',
    `the daemon ${name} was seen ${secondsAgo} s ago, and cannot work with ${breaking(seen, pending)?.name}: ` +
      'stop it, or replace it with this version; one that could not record its stop counts as running for a minute',
  )
}

/** The first migration that a daemon could not work with. */
function breaking({ migrations }: SeenDaemon, pending: Migrations): Migrations[number] | undefined {
  return pending.find((each) => phaseOf(each) !== 'expand' && !migrations?.includes(each.name))
}

async function refuseWithoutBackup({ db, config, clock }: Source): Promise<void> {
  if (config.env !== 'production' || !(await hasApps(db))) return
  const taken = await newestVerified(config.backup.folder, clock.now())
  if (taken !== null && taken.getTime() > clock.now().getTime() - DAY_MS) return
  const newest = taken === null ? 'there is none' : `the newest is from ${formatUtc(taken)}`
  throw new AppError(
    'invalid_request',
    `a verified backup of the last 24 hours is needed, since a migration cannot be undone, and ${newest} in ${config.backup.folder}: ` +
      'run billing-cli backup create and billing-cli backup verify, or give --without-backup',
  )
}
