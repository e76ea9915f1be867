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
import { MysqlGroup } from './mysql-group-servers.ts'
import { remindersFallDue } from './shop.ts'

type Trial = ClusterTrial<MysqlGroup>

/**
 * A group of three MySQL servers with one primary, which is killed, frozen, relieved, and cut off from the others; then two of three are
 * killed.
 */
export async function mysqlGroup(options: ClusterOptions): Promise<ClusterFigures> {
  const cluster = await MysqlGroup.start()
  try {
    return await onCluster(cluster, options, async (trial) => [
      await whileThePrimaryDies(trial),
      await whileThePrimaryFreezes(trial),
      await whileItHandsOver(trial),
      ...(cluster.canCut ? [await whileThePrimaryIsCutOff(trial)] : []),
      await whileTwoDie(trial),
    ])
  } finally {
    await cluster.stop()
  }
}

async function whileThePrimaryDies(trial: Trial): Promise<PartFigures> {
  await remindersFallDue(trial.ctx, trial.shop, 'due-killed', trial.options.reminders)
  const primary = await primaryOf(trial)
  const figures = await sell(trial, 'kill -9 of the primary', () => trial.cluster.kill(primary))
  await returns(trial, primary)
  return figures
}

async function whileThePrimaryFreezes(trial: Trial): Promise<PartFigures> {
  const { cluster } = trial
  const primary = await primaryOf(trial)
  try {
    return await sell(trial, 'the primary freezes', () => cluster.signal(primary, 'SIGSTOP'))
  } finally {
    cluster.signal(primary, 'SIGCONT')
    await returns(trial, primary)
  }
}

async function whileItHandsOver(trial: Trial): Promise<PartFigures> {
  const primary = await primaryOf(trial)
  return sell(trial, 'a planned hand-over', () => trial.cluster.handOver((primary + 1) % 3))
}

/** The others do not reach it, and the daemons do. */
async function whileThePrimaryIsCutOff(trial: Trial): Promise<PartFigures> {
  const { cluster } = trial
  const primary = await primaryOf(trial)
  try {
    return await sell(trial, 'the primary is cut off', () => cluster.cut(primary))
  } finally {
    cluster.heal(primary)
    await returns(trial, primary)
  }
}

/** One member of three is not a majority: it takes no changes until an operator bootstraps the group anew. */
async function whileTwoDie(trial: Trial): Promise<PartFigures> {
  const { cluster } = trial
  // The primary has every payment that was acknowledged; one that never heard of some might be left otherwise.
  const primary = await primaryOf(trial)
  const others = [0, 1, 2].filter((number) => number !== primary)
  const figures = await sell(trial, 'kill -9 of two members', async (tally) => {
    await Promise.all(others.map((number) => cluster.kill(number)))
    const deferred = tally.deferred
    await until('a request is deferred', () => tally.deferred > deferred)
    await until('no daemon is ready', async () => (await readiness(trial)).every((status) => status === 503))
    await cluster.goOnAlone(primary)
  })
  for (const number of others) await cluster.join(number)
  await untilReady(trial)
  return figures
}

async function returns(trial: Trial, number: number): Promise<void> {
  await trial.cluster.join(number)
  await untilReady(trial)
}

async function primaryOf({ cluster }: Trial): Promise<number> {
  for (const number of [0, 1, 2]) {
    const primary = await cluster.primary(number)
    if (primary !== null) return primary
  }
  throw new Error('the group has no primary')
}
