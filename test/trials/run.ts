import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { messageOf } from '#shared/errors.ts'
import { systemClock } from '#shared/time.ts'
import { emptyTestDatabase, startTestDatabase, stopTestDatabase, testDatabase } from '../support/database.ts'
import { cardDuplicates } from './card-duplicates.ts'
import { clockSkew } from './clock-skew.ts'
import { crashPayments } from './crash-payments.ts'
import { DATABASE_OUTAGES, databaseOutage } from './database-outage.ts'
import { deadlockStorm } from './deadlock-storm.ts'
import { galera } from './galera.ts'
import { httpAbuse } from './http-abuse.ts'
import { killedHandlers } from './killed-handlers.ts'
import { killStorm } from './kill-storm.ts'
import { mailFuzz } from './mail-fuzz.ts'
import { mailServer } from './mail-server.ts'
import { killedMailers } from './killed-mailers.ts'
import { operatorWalk } from './operator-walk.ts'
import { overload } from './overload.ts'
import { debianPackage } from './package.ts'
import { paymentRace } from './payment-race.ts'
import { quoteHistories } from './quote-histories.ts'
import { OUTAGES, realtimeOutage } from './realtime-outage.ts'
import { router } from './router.ts'
import { stopOnHungReceiver, stopUnderLoad } from './stop-under-load.ts'
import { steadyMemory } from './steady-memory.ts'
import { steadyRequests } from './steady-requests.ts'
import { twoDaemons } from './two-daemons.ts'
import { writeReport, type TrialRun } from './write-report.ts'

const ROOT = join(import.meta.dirname, '../..')
const REPORT = join(import.meta.dirname, 'trials.md')

interface Trial {
  /** Null if nothing is random. */
  readonly seed: number | null
  readonly run: () => Promise<unknown>
}

const fixed = (run: () => Promise<unknown>): Trial => ({ seed: null, run })
const seeded = (seed: number, run: (seed: number) => Promise<unknown>): Trial => ({ seed, run: () => run(seed) })

/** The long form of each trial; the short ones are in the test suite. Each ends with a verified ledger and throws if a condition fails. */
const TRIALS: Readonly<Record<string, Trial>> = {
  'crash-payments': fixed(() => crashPayments({ payments: 200, kills: 5 })),
  'card-one-event': seeded(11, (seed) =>
    cardDuplicates({ payments: 1, copies: 10_000, connections: 50, daemons: 3, seed }),
  ),
  'card-many-events': seeded(12, (seed) =>
    cardDuplicates({ payments: 500, copies: 20, connections: 50, daemons: 3, seed }),
  ),
  'killed-handlers': fixed(() => killedHandlers({ every: 1 })),
  'kill-storm': seeded(31, (seed) => killStorm({ endUsers: 200, seed, sessionFaults: 0.05 })),
  'mail-fuzz': seeded(22, (seed) => mailFuzz({ mails: 20_000, seed, connections: 4 })),
  'mail-server': fixed(() => mailServer()),
  'killed-mailers': seeded(6, (seed) => killedMailers({ mails: 600, kills: 60, seed })),
  'steady-memory': fixed(() => steadyMemory({ sweeps: 20, mailsPerSweep: 500, mostGrowthKb: 4000 })),
  'steady-requests': fixed(() => steadyRequests({ requests: 1_000_000, loadSeconds: 3, mostGrowthKb: 8000 })),
  'database-outage': fixed(() =>
    databaseOutage({ outages: DATABASE_OUTAGES, payments: 400, payers: 40, frozenMs: 60_000 }),
  ),
  'stop-under-load': seeded(15, (seed) => stopUnderLoad({ stops: 30, connections: 20, seed })),
  'stop-on-hung-receiver': fixed(() => stopOnHungReceiver({ timeoutMs: 60_000 })),
  'deadlock-storm': seeded(18, (seed) => deadlockStorm({ payments: 2000, rivals: 30, seed })),
  'http-abuse': fixed(() => httpAbuse({ slowSockets: 1000, slowBodies: 100 })),
  overload: fixed(() =>
    overload({
      perSecond: 2000,
      times: 1.5,
      seconds: 20,
      capacitySeconds: 10,
      notifications: 100,
      reminders: 50,
      mostP99Ms: 2000,
      leastShare: 0.8,
    }),
  ),
  'two-daemons': fixed(() => twoDaemons({ payments: 200, reminders: 100, daemons: 2 })),
  galera: fixed(() => galera({ payments: 200, endUsers: 20, reminders: 40, payers: 12 })),
  router: fixed(() => router({ payments: 200, transactions: 500, callers: 20 })),
  'clock-skew-seconds': fixed(() => clockSkew({ skewMs: 1000, events: 200 })),
  'clock-skew-hours': fixed(() => clockSkew({ skewMs: 5 * 3_600_000, events: 200 })),
  'operator-walk': fixed(() => operatorWalk()),
  package: fixed(() => debianPackage({ versions: [12, 13] })),
  'quote-histories': seeded(7, (seed) => quoteHistories({ histories: 2000, seed })),
  'payment-race': seeded(14, (seed) => paymentRace({ rounds: 500, seed })),
  ...Object.fromEntries(
    OUTAGES.map((outage) => [`realtime-${outage}`, seeded(13, (seed) => realtimeOutage(outage, 50, seed))]),
  ),
}

const print = (line: string) => void process.stdout.write(`${line}\n`)

/** Runs the trials named by the arguments, or all, and writes their figures into the report; exits with 1 if one failed. */
async function runTrials(names: readonly string[]): Promise<void> {
  const unknown = names.filter((name) => !(name in TRIALS))
  if (unknown.length > 0)
    throw new Error(`no such trial: ${unknown.join(', ')}; there are ${Object.keys(TRIALS).join(', ')}`)
  const failed: string[] = []
  const runs: TrialRun[] = []
  const all = Object.keys(TRIALS)
  for (const [name, trial] of Object.entries(TRIALS)) {
    if (names.length > 0 && !names.includes(name)) continue
    await startTestDatabase()
    const machine = await describeMachine()
    const startedAt = systemClock.now()
    const startedMs = performance.now()
    const end = (outcome: TrialRun['outcome']) => {
      const seconds = (performance.now() - startedMs) / 1000
      runs.push({ name, seed: trial.seed, startedAt, seconds, machine, outcome })
      return seconds.toFixed(1)
    }
    try {
      const figures = await trial.run()
      print(`${name}: held in ${end({ figures })} s ${JSON.stringify(figures)}`)
    } catch (error) {
      failed.push(name)
      const seconds = end({ error: messageOf(error).split('\n')[0]?.replaceAll(ROOT, '.') ?? '' })
      print(
        `${name}: FAILED after ${seconds} s ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
      )
    } finally {
      await emptyTestDatabase()
      await stopTestDatabase()
    }
    // After each, so that an interrupted run keeps its results.
    writeReport(REPORT, all, runs, false)
  }
  if (runs.length === all.length) writeReport(REPORT, all, runs, true)
  print(failed.length === 0 ? 'every trial held' : `failed: ${failed.join(', ')}`)
  process.exitCode = failed.length === 0 ? 0 : 1
}

async function describeMachine(): Promise<string> {
  const [server]: { version: string }[] = await testDatabase().db.query('SELECT VERSION() AS version')
  return `${availableParallelism()} cores, Node ${process.version}, ${server?.version ?? ''}`
}

await runTrials(process.argv.slice(2))
