import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { ConnectionOptions } from 'mysql2'
import type { MigrationExecutor, QueryRunner } from 'typeorm'
import type { Migration, Phase } from '#migrations/migration.ts'
import { readClusterNode } from './cluster.ts'
import { exact } from './columns.ts'
import { hasErrno, unlessForbidden } from './database-error.ts'
import { underLease } from './migration-lease.ts'
import type { Queries } from './queries.ts'
import { shape } from './table.ts'

type Readable = Pick<Queries, 'all'>
export type Migrations = readonly (new () => Migration)[]

const FOLDER = join(import.meta.dirname, '..', '..', 'migrations')
const FILES = readdirSync(FOLDER).filter((file) => /^\d{13}-/.test(file))

/** Every change of the schema, in order: the classes of the numbered files. */
export const MIGRATIONS: Migrations = await Promise.all(FILES.sort().map(loadMigration))

/** The migrations that `migrate` runs, and those that `migrate --contract` runs once no older daemon is left. */
export const EXPANDING = MIGRATIONS.filter((each) => phaseOf(each) !== 'contract')
export const CONTRACTING = MIGRATIONS.filter((each) => phaseOf(each) === 'contract')

/** The phase of a migration; null for the earliest ones, which declare none. */
export function phaseOf(Each: new () => Migration): Phase | null {
  return new Each().phase ?? null
}

async function loadMigration(file: string): Promise<new () => Migration> {
  const [Migration] = Object.values((await import(`#migrations/${file}`)) as Record<string, new () => Migration>)
  if (Migration) return Migration
  throw new Error(`migrations/${file} exports no class`)
}

const NO_SUCH_TABLE = 1146

/** What a database records about its migrations. */
interface Bookkeeping {
  readonly applied: ReadonlySet<string>
  /** Whether the table of version 0.1 still exists. */
  readonly isOld: boolean
}

const NAMES = shape({ name: exact('name', 255) })

async function readBookkeeping(db: Readable): Promise<Bookkeeping> {
  const tables = await db.all(
    NAMES,
    `SELECT table_name AS name FROM information_schema.tables
     WHERE table_schema = DATABASE() AND table_name IN ('migrations', 'schema_migrations')`,
  )
  try {
    const rows = await Promise.all(tables.map(({ name }) => db.all(NAMES, `SELECT name FROM ${name}`)))
    return {
      applied: new Set(rows.flat().map(({ name }) => name)),
      isOld: tables.some(({ name }) => name === 'schema_migrations'),
    }
  } catch (error) {
    // Another process has just replaced the old table.
    if (hasErrno(error, NO_SUCH_TABLE)) return readBookkeeping(db)
    throw error
  }
}

function missingFrom({ applied }: Bookkeeping, migrations: Migrations): string[] {
  return migrations.map(({ name }) => name).filter((name) => !applied.has(name))
}

/** The names of the migrations that are not applied, in order; by default of those that a daemon needs. Reads only. */
export async function pendingMigrations(db: Readable, migrations: Migrations = EXPANDING): Promise<string[]> {
  return missingFrom(await readBookkeeping(db), migrations)
}

/** How the names of contracting migrations begin, so that a version that does not know one knows what it did. */
const CONTRACTS = 'Contract'

/** The names of contracting migrations that a newer version applied: this one cannot work with their result. Reads only. */
export async function newerContractions(db: Readable): Promise<string[]> {
  const { applied } = await readBookkeeping(db)
  const known = new Set(MIGRATIONS.map(({ name }) => name))
  return [...applied].filter((name) => name.startsWith(CONTRACTS) && !known.has(name))
}

/** Called after each migration with its name and how long it took. */
export type OnApplied = (name: string, ms: number) => void

/**
 * Applies the pending migrations, by default those that expand the schema; returns the names of those that this call applied. If several
 * processes call it at once, one migrates under a lease and the others wait. The lease of a dead process expires after 15 s.
 */
export async function runMigrations(
  db: Readable & { readonly targets: readonly ConnectionOptions[] },
  migrations: Migrations = EXPANDING,
  onApplied: OnApplied = () => undefined,
): Promise<string[]> {
  if (await isUpToDate(db, migrations)) return []
  const { openMigrator } = await import('./typeorm.ts')
  const { executor, runner, leaseRunner, close } = await openMigrator(db.targets, migrations)
  try {
    await refuseRollingUpgrade(runner)
    const applied = await underLease(
      leaseRunner,
      () => isUpToDate(db, migrations),
      async (renew) => {
        await takeOver(executor, runner)
        return applyPending(executor, renew, onApplied)
      },
    )
    return applied ?? []
  } finally {
    await close()
  }
}

async function isUpToDate(db: Readable, migrations: Migrations): Promise<boolean> {
  const bookkeeping = await readBookkeeping(db)
  return !bookkeeping.isOld && missingFrom(bookkeeping, migrations).length === 0
}

/** With RSU, the other nodes of a cluster would record a migration as applied without applying it. */
async function refuseRollingUpgrade(runner: QueryRunner): Promise<void> {
  const node = await readClusterNode((sql) => runner.query(sql) as Promise<unknown[]>)
  if (node && node.schemaMethod !== 'TOI')
    throw new Error(
      `wsrep_osu_method of this node is ${node.schemaMethod}, which migrates this node alone: SET GLOBAL wsrep_osu_method = 'TOI', then run migrate again`,
    )
}

/**
 * Copies the records of version 0.1 from its own table, empties that table and drops it. Completes a copy that was interrupted. A user who
 * may not drop tables leaves it empty, so that version 0.1 does not start.
 */
async function takeOver(executor: MigrationExecutor, runner: QueryRunner): Promise<void> {
  if (!(await runner.hasTable('schema_migrations'))) return
  // Also creates the table `migrations`.
  await executor.showMigrations()
  const copied = new Set((await executor.getExecutedMigrations()).map(({ name }) => name))
  const recorded: unknown = await runner.query('SELECT name FROM schema_migrations ORDER BY RIGHT(name, 13)')
  const rows = recorded as { name: string }[]
  for (const { name } of rows.filter((row) => !copied.has(row.name)))
    await executor.insertMigration({ id: undefined, name, timestamp: Number(name.slice(-13)) })
  await runner.query('DELETE FROM schema_migrations')
  await unlessForbidden(runner.query('DROP TABLE schema_migrations'))
}

async function applyPending(
  executor: MigrationExecutor,
  renew: () => Promise<void>,
  onApplied: OnApplied,
): Promise<string[]> {
  const applied: string[] = []
  for (const migration of await executor.getPendingMigrations()) {
    await renew()
    const began = performance.now()
    await executor.executeMigration(migration)
    applied.push(migration.name)
    onApplied(migration.name, performance.now() - began)
  }
  return applied
}
