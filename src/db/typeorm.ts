import type { ConnectionOptions } from 'mysql2'
import { DataSource, MigrationExecutor, type QueryRunner } from 'typeorm'
import type { Migration } from '#migrations/migration.ts'
import { sessionOf } from './session.ts'

/** Applies migrations: TypeORM with its own two connections, to the first server that accepts writes. */
export interface Migrator {
  /** Applies migrations on `runner`, and records them in the table `migrations`. */
  readonly executor: MigrationExecutor
  readonly runner: QueryRunner
  /** Renews the lease while a statement of `runner` runs. */
  readonly leaseRunner: QueryRunner
  readonly close: () => Promise<void>
}

/** A schema change that waits longer for its table fails, because every later statement waits behind it. */
const METADATA_LOCK_WAIT_SECONDS = 30

export async function openMigrator(
  targets: readonly ConnectionOptions[],
  migrations: readonly (new () => Migration)[],
): Promise<Migrator> {
  for (const [index, target] of targets.entries()) {
    refuseDot(target.database)
    try {
      return await openMigratorOn(target, migrations, targets.length > 1)
    } catch (error) {
      if (index === targets.length - 1) throw error
    }
  }
  throw new Error('no server is configured')
}

function refuseDot(database: string | undefined): void {
  if (database?.includes('.'))
    throw new Error(`the name of the database must not contain a dot, which TypeORM treats as a separator: ${database}`)
}

async function openMigratorOn(
  target: ConnectionOptions,
  migrations: readonly (new () => Migration)[],
  hasOthers: boolean,
): Promise<Migrator> {
  const { database } = target
  const source = new DataSource({
    // Also for MariaDB: the two types differ only where TypeORM creates the tables of entities.
    type: 'mysql',
    ...(database === undefined ? {} : { database }),
    extra: target,
    charset: 'utf8mb4',
    timezone: 'Z',
    bigNumberStrings: false,
    poolSize: 2,
    migrations: [...migrations],
    logging: false,
  })
  try {
    await source.initialize()
    const [runner, leaseRunner] = [await openRunner(source, hasOthers), await openRunner(source, hasOthers)]
    return { executor: new MigrationExecutor(source, runner), runner, leaseRunner, close: () => source.destroy() }
  } catch (error) {
    if (source.isInitialized) await source.destroy()
    throw error
  }
}

/** Opens a connection with the pool's session settings, but without deadlines. */
async function openRunner(source: DataSource, hasOthers: boolean): Promise<QueryRunner> {
  const runner = source.createQueryRunner()
  await sessionOf(0, hasOthers)({ command: (sql) => runner.query(sql) })
  await runner.query(`SET SESSION lock_wait_timeout = ${METADATA_LOCK_WAIT_SECONDS}`)
  return runner
}
