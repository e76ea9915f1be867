import { startTestDatabase, stopTestDatabase, emptyTestDatabase } from '../support/database.ts'
import { cardDuplicates } from './card-duplicates.ts'
import { TOLERATED_SKEW_MS, clockSkew } from './clock-skew.ts'
import { crashPayments } from './crash-payments.ts'
import { DATABASE_OUTAGES, databaseOutage } from './database-outage.ts'
import { deadlockStorm } from './deadlock-storm.ts'
import { httpAbuse } from './http-abuse.ts'
import { killedHandlers } from './killed-handlers.ts'
import { mailFuzz } from './mail-fuzz.ts'
import { mailServer } from './mail-server.ts'
import { killedMailers } from './killed-mailers.ts'
import { operatorWalk } from './operator-walk.ts'
import { paymentRace } from './payment-race.ts'
import { OUTAGES, realtimeOutage } from './realtime-outage.ts'
import { stopOnHungReceiver, stopUnderLoad } from './stop-under-load.ts'
import { twoDaemons } from './two-daemons.ts'

/** The long form of each trial; the short ones are in the test suite. Each ends with a verified ledger and throws where something does not hold. */
const TRIALS: Readonly<Record<string, () => Promise<unknown>>> = {
  'crash-payments': () => crashPayments({ payments: 200, kills: 5 }),
  'card-one-event': () => cardDuplicates({ payments: 1, copies: 10_000, connections: 50, daemons: 3, seed: 11 }),
  'card-many-events': () => cardDuplicates({ payments: 500, copies: 20, connections: 50, daemons: 3, seed: 12 }),
  'killed-handlers': () => killedHandlers({ every: 1 }),
  'mail-fuzz': () => mailFuzz({ mails: 20_000, seed: 22, connections: 4 }),
  'mail-server': () => mailServer(),
  'killed-mailers': () => killedMailers({ mails: 600, kills: 60, seed: 6 }),
  'database-outage': () => databaseOutage({ outages: DATABASE_OUTAGES, payments: 400, payers: 40, frozenMs: 60_000 }),
  'stop-under-load': () => stopUnderLoad({ stops: 30, connections: 20, seed: 15 }),
  'stop-on-hung-receiver': () => stopOnHungReceiver({ timeoutMs: 60_000 }),
  'deadlock-storm': () => deadlockStorm({ payments: 200, rivals: 10, seed: 18 }),
  'http-abuse': () => httpAbuse({ slowSockets: 1000, slowBodies: 100 }),
  'two-daemons': () => twoDaemons({ payments: 200, reminders: 100, daemons: 2 }),
  'clock-skew-tolerated': () => clockSkew({ skewMs: TOLERATED_SKEW_MS, events: 200 }),
  'clock-skew-wild': () => clockSkew({ skewMs: 600_000, events: 200 }),
  'operator-walk': () => operatorWalk(),
  'payment-race': () => paymentRace({ rounds: 500, seed: 14 }),
  ...Object.fromEntries(OUTAGES.map((outage) => [`realtime-${outage}`, () => realtimeOutage(outage, 50, 13)])),
}

const print = (line: string) => void process.stdout.write(`${line}\n`)

/** Runs the trials that the arguments name, or all; the exit code is 1 where one failed. */
async function runTrials(names: readonly string[]): Promise<void> {
  const unknown = names.filter((name) => !(name in TRIALS))
  if (unknown.length > 0)
    throw new Error(`no such trial: ${unknown.join(', ')}; there are ${Object.keys(TRIALS).join(', ')}`)
  const failed: string[] = []
  for (const [name, run] of Object.entries(TRIALS)) {
    if (names.length > 0 && !names.includes(name)) continue
    await startTestDatabase()
    const startedMs = performance.now()
    try {
      const figures = await run()
      print(`${name}: held in ${((performance.now() - startedMs) / 1000).toFixed(1)} s ${JSON.stringify(figures)}`)
    } catch (error) {
      failed.push(name)
      print(`${name}: FAILED ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`)
    } finally {
      await emptyTestDatabase()
      await stopTestDatabase()
    }
  }
  print(failed.length === 0 ? 'every trial held' : `failed: ${failed.join(', ')}`)
  process.exitCode = failed.length === 0 ? 0 : 1
}

await runTrials(process.argv.slice(2))
