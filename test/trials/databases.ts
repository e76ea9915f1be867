import { join } from 'node:path'
import { AppError } from '#shared/errors.ts'
import { requireCleanLedger } from '../support/clean-ledger.ts'
import { testContext } from '../support/context.ts'
import { emptyTestDatabase, onDatabase, testDatabase } from '../support/database.ts'
import { aCheckout, anApp, aPlan, FREE_TRIAL, MONTHLY, priceId } from '../support/factories.ts'
import { onCluster, sell, untilReady } from './cluster-trial.ts'
import { crashPayments } from './crash-payments.ts'
import { GaleraCluster } from './galera-cluster.ts'
import { MYSQL_FOLDER, MysqlGroup } from './mysql-group-servers.ts'
import { paymentRace } from './payment-race.ts'
import { startGroupBehindRouter } from './router.ts'
import { SingleServer } from './single-server.ts'

/** Where `bin/database-packages` put MariaDB. */
const MARIADB_FOLDER = process.env['PAYGATE_TEST_MARIADB'] ?? join(import.meta.dirname, '../../.mariadb')

/** A database for a run. */
interface Database {
  url(first?: number): string
  /** Kills its server with -9, and starts it again; or kills one of several, the primary. */
  fail(): Promise<void>
  /** Takes back the one that was killed. */
  mend(): Promise<void>
  stop(): Promise<void>
}

export interface DatabasesOptions {
  /** Of each database. */
  readonly payments: number
  readonly reminders: number
  /** Free trials of one end user that are asked for at once. */
  readonly trials: number
  /** Payments that card, bank mail, operator and page confirm at once. */
  readonly rounds: number
}

const single = (server: SingleServer): Database => ({
  url: () => server.url(),
  fail: () => server.killAndRestart(),
  mend: () => Promise.resolve(),
  stop: () => server.stop(),
})

interface Several {
  url(first?: number): string
  kill(number: number): Promise<void>
  /** Not where a proxy would send changes to the first member again, which is no longer the primary. */
  join?(number: number): Promise<void>
  stop(): Promise<void>
}

const several = (servers: Several): Database => ({
  url: (first) => servers.url(first),
  fail: () => servers.kill(0),
  mend: async () => servers.join?.(0),
  stop: () => servers.stop(),
})

/** By the last part of the trial's name. */
export const DATABASES = {
  mysql: async () => single(await SingleServer.start([join(MYSQL_FOLDER, 'bin')])),
  group: async () => several(await MysqlGroup.start()),
  router: async () => several(await startGroupBehindRouter()),
  // The machine's own: 10.11 on Debian 12.
  mariadb: async () => single(await SingleServer.start(['/usr/sbin', '/usr/bin'])),
  // 11.8, of Debian 13.
  'newer-mariadb': async () => single(await SingleServer.start([join(MARIADB_FOLDER, 'bin')])),
  galera: async () => several(await GaleraCluster.start()),
} as const satisfies Readonly<Record<string, () => Promise<Database>>>

/**
 * The same run on each kind of database: checkouts, payments at once, webhooks, reminders, kill -9 of the server and of the daemon, bank
 * mails, trials at once, doctor, ledger. Throws at the first thing that differs from what every database must do.
 */
export async function databases(kind: keyof typeof DATABASES, options: DatabasesOptions) {
  const database = await DATABASES[kind]()
  try {
    return await onDatabase(database.url(), () => runOn(database, options))
  } finally {
    await database.stop()
  }
}

async function runOn(database: Database, options: DatabasesOptions) {
  const { payments, reminders, rounds } = options
  const load = { payments, reminders, endUsers: 10, payers: 8 }
  const { parts, webhooks, mails } = await onCluster(database, load, async (trial) => {
    const figures = await sell(trial, 'kill -9 of the server', () => database.fail())
    await database.mend()
    await untilReady(trial)
    return [figures]
  })
  await emptyTestDatabase()
  await crashPayments({ payments, kills: 2 })
  await emptyTestDatabase()
  const { winners } = await paymentRace({ rounds, seed: 5 })
  await emptyTestDatabase()
  await takeTrialsAtOnce(options.trials)
  const [server]: { version: string }[] = await testDatabase().db.query('SELECT VERSION() AS version')
  return { version: server?.version ?? '', parts, webhooks, mails, winners }
}

/** One end user asks for a free trial several times at once, and gets one. */
async function takeTrialsAtOnce(trials: number): Promise<void> {
  const ctx = testContext()
  const app = await anApp(ctx)
  const plan = await aPlan(ctx, app, { prices: [{ ...MONTHLY, trial: FREE_TRIAL }] })
  const asked = await Promise.allSettled(
    Array.from({ length: trials }, () => aCheckout(ctx, app, { price_id: priceId(plan) })),
  )
  const refused = asked.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason as unknown] : []))
  const odd = refused.find((error) => !(error instanceof AppError))
  if (odd) throw new Error('a trial was refused for no reason of Paygate', { cause: odd })
  const taken = asked.filter((outcome) => outcome.status === 'fulfilled' && outcome.value.activated)
  if (taken.length !== 1) throw new Error(`${taken.length} trials of one end user`)
  await requireCleanLedger(ctx, 'after trials at once')
}
