import type { QueryRunner } from 'typeorm'
import { MIGRATIONS, runMigrations } from '#db/migrate.ts'
import { messageOf } from '#shared/errors.ts'
import type { Migration } from '#migrations/migration.ts'
import { openTestDb } from '../support/database.ts'
import {
  onCluster,
  readiness,
  sell,
  until,
  untilReady,
  type ClusterFigures,
  type ClusterOptions,
  type ClusterTrial,
  type PartFigures,
} from './cluster-trial.ts'
import { GaleraCluster } from './galera-cluster.ts'
import { remindersFallDue } from './shop.ts'

type Trial = ClusterTrial<GaleraCluster>

/** Galera: a node is killed and comes back, two are killed, and the schema changes. */
export async function galera(options: ClusterOptions): Promise<ClusterFigures> {
  const cluster = await GaleraCluster.start()
  try {
    await refusesSchemaByNode(cluster)
    return await onCluster(cluster, options, async (trial) => [
      await whileOneDies(trial),
      await whileTwoDie(trial),
      await whileTheSchemaChanges(trial),
    ])
  } finally {
    await cluster.stop()
  }
}

/** A node configured to change the schema by itself would diverge from the others. */
async function refusesSchemaByNode(cluster: GaleraCluster): Promise<void> {
  await cluster.ask(0, "SET GLOBAL wsrep_osu_method = 'RSU'")
  const { db, close } = await openTestDb(cluster.url())
  try {
    const refusal = await runMigrations(db).then(() => 'it migrated', messageOf)
    if (!refusal.includes('RSU')) throw new Error(`migrate with RSU did not refuse: ${refusal}`)
    const [table] = await cluster.ask(0, 'SHOW TABLES FROM paygate')
    if (table) throw new Error('migrate created a table before it refused')
  } finally {
    await close()
    await cluster.ask(0, "SET GLOBAL wsrep_osu_method = 'TOI'")
  }
}

async function whileOneDies(trial: Trial): Promise<PartFigures> {
  await remindersFallDue(trial.ctx, trial.shop, 'due-killed', trial.options.reminders)
  const figures = await sell(trial, 'kill -9 of one node', () => trial.cluster.kill(1))
  await trial.cluster.join(1)
  await untilReady(trial)
  return figures
}

/** One node of three is not a majority: it serves nobody until an operator bootstraps it. */
async function whileTwoDie(trial: Trial): Promise<PartFigures> {
  const { cluster } = trial
  const figures = await sell(trial, 'kill -9 of two nodes', async (tally) => {
    await Promise.all([cluster.kill(0), cluster.kill(2)])
    const deferred = tally.deferred
    await until('a request is deferred', () => tally.deferred > deferred)
    await until('no daemon is ready', async () => (await readiness(trial)).every((status) => status === 503))
    await cluster.goOnAlone(1)
  })
  await Promise.all([cluster.join(0), cluster.join(2)])
  await untilReady(trial)
  return figures
}

async function whileTheSchemaChanges(trial: Trial): Promise<PartFigures> {
  return sell(trial, 'a migration', async () => {
    const applied = await runMigrations(trial.ctx.db, [...MIGRATIONS, Later1800000000000])
    if (applied.length !== 1) throw new Error(`migrated: ${applied.join()}`)
  })
}

/** A change of a next version to tables that every payment writes. */
class Later1800000000000 implements Migration {
  readonly work = { transactions: ['instant'], events: ['index'] } as const

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE transactions ADD COLUMN later BIGINT NULL, ALGORITHM=INSTANT')
    await runner.query('ALTER TABLE events ADD KEY events_later (app_id, created_at), ALGORITHM=INPLACE, LOCK=NONE')
  }

  async down(): Promise<void> {
    await Promise.reject(new Error('not reversible'))
  }
}
