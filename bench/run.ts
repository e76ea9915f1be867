import { availableParallelism, loadavg } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { formatTimestamp, systemClock } from '#shared/time.ts'
import { generateAll } from '../docs/generate.ts'
import { emptyTestDatabase, startTestDatabase, stopTestDatabase, testDatabase } from '../test/support/database.ts'
import { checkoutBench, readBench } from './api.ts'
import { cliBench } from './cli.ts'
import { dueQueryBench } from './due-query.ts'
import { memoryBench } from './memory.ts'
import { paymentBench } from './payments.ts'
import { profileInto } from './profiled.ts'
import { readyBench } from './ready.ts'
import { reminderBench } from './reminders.ts'
import { printable, writeReport } from './report.ts'
import type { Bench, Outcome } from './row.ts'
import { testClockBench } from './test-clock.ts'
import { webhookBench } from './webhooks.ts'

const REPORT = join(import.meta.dirname, 'results.md')
const PROFILES = join(import.meta.dirname, '..', 'var', 'bench', 'profiles')
/** The embedded server's own would measure the disk. */
const BUFFER_POOL_BYTES = 2 ** 30

const BENCHES: readonly Bench[] = [
  readBench,
  checkoutBench,
  paymentBench,
  webhookBench,
  reminderBench,
  readyBench,
  memoryBench,
  cliBench,
  testClockBench,
  dueQueryBench,
]
const ROWS = BENCHES.flatMap(({ rows }) => rows)
const USAGE = `npm run bench -- [--quick] [--profile] [row…]

  --quick    one short round, for a look whether all of it works: measures nothing, writes no report
  --profile  writes CPU profiles of our processes into var/bench/profiles
  rows       ${ROWS.map(({ name }) => name).join(', ')}
`

const print = (line: string) => void process.stdout.write(`${line}\n`)

/** Runs the rows that are named, or all but the long ones, and writes them into the report; the exit code is 1 where one failed. */
async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    options: { quick: { type: 'boolean', default: false }, profile: { type: 'boolean', default: false } },
    allowPositionals: true,
  })
  const unknown = positionals.filter((name) => !ROWS.some((row) => row.name === name))
  if (unknown.length > 0) throw new Error(`no such row: ${unknown.join(', ')}\n\n${USAGE}`)
  if (values.profile) profileInto(PROFILES)
  const isNamed = ({ rows, isLong }: Bench): boolean =>
    positionals.length === 0 ? isLong !== true : rows.some(({ name }) => positionals.includes(name))
  const outcomes = new Map<string, Outcome>()
  await startTestDatabase()
  try {
    const machine = await describeMachine()
    print(machine)
    // Where nothing is measured, the server keeps its settings for the tests that run at the same time.
    if (!values.quick) await setServer()
    for (const bench of BENCHES.filter(isNamed)) await runOne(bench, values.quick, outcomes)
    print(`\n${printable(ROWS, outcomes)}`)
    if (values.quick || values.profile) return
    writeReport(REPORT, ROWS, outcomes, machine)
    // The README quotes the report.
    await generateAll()
  } finally {
    await stopTestDatabase()
  }
}

async function runOne(bench: Bench, isQuick: boolean, outcomes: Map<string, Outcome>): Promise<void> {
  const names = bench.rows.map(({ name }) => name)
  const startedMs = performance.now()
  try {
    for (const [name, outcome] of Object.entries(await bench.run({ isQuick }))) outcomes.set(name, outcome)
  } catch (error) {
    for (const name of names) outcomes.set(name, { skipped: 'failed' })
    process.stderr.write(`${names.join(', ')}: ${error instanceof Error ? (error.stack ?? '') : String(error)}\n`)
    process.exitCode = 1
  }
  await emptyTestDatabase()
  print(`${names.join(', ')}: ${((performance.now() - startedMs) / 1000).toFixed(0)} s`)
}

async function setServer(): Promise<void> {
  const { db } = testDatabase()
  // The test server acknowledges commits before they are on disk; what is measured here is durable.
  await db.query('SET GLOBAL innodb_flush_log_at_trx_commit = 1')
  await db.query(`SET GLOBAL innodb_buffer_pool_size = ${BUFFER_POOL_BYTES}`)
}

/** With the load of the last minute: the figures of a machine that has other work are of no use. */
async function describeMachine(): Promise<string> {
  const [server]: { version: string }[] = await testDatabase().db.query('SELECT VERSION() AS version')
  const parts = [
    `${availableParallelism()} cores`,
    `load ${loadavg()[0]!.toFixed(1)}`,
    `Node ${process.version}`,
    server?.version ?? '',
    formatTimestamp(systemClock.now()),
  ]
  return parts.join(', ')
}

await main()
