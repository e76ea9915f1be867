import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { inspect, parseArgs } from 'node:util'
import { messageOf } from '#shared/errors.ts'
import { systemClock } from '#shared/time.ts'
import { emptyTestDatabase, startTestDatabase, stopTestDatabase, testDatabase } from '../support/database.ts'
import { TRIALS, type Trial, type TrialOptions } from './trials.ts'
import { writeReport, type TrialRun } from './write-report.ts'

const ROOT = join(import.meta.dirname, '../..')
const REPORT = join(import.meta.dirname, 'trials.md')

const print = (line: string) => void process.stdout.write(`${line}\n`)

interface Asked extends TrialOptions {
  readonly names: readonly string[]
  readonly isList: boolean
  /** Whether the trials run as their declarations say, so that their figures may be reported. */
  readonly isUsual: boolean
}

/** `run.ts [<trial>…] [--list] [--seed N] [--depth N] [--steps N] [--case NAME]`. Throws for what is not understood. */
function readArguments(args: readonly string[]): Asked {
  const text = { type: 'string' } as const
  const { values, positionals: names } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: { list: { type: 'boolean' }, seed: text, depth: text, steps: text, case: text },
  })
  const unknown = names.filter((name) => !Object.keys(TRIALS).some((trial) => isOf(name, trial)))
  if (unknown.length > 0)
    throw new Error(`no such trial: ${unknown.join(', ')}; there are ${Object.keys(TRIALS).join(', ')}`)
  const { list: isList = false, case: name = null, ...numbers } = values
  if (name !== null) requireCase(names, name)
  const isUsual = name === null && Object.keys(numbers).length === 0
  const counts = {
    seed: countOf('seed', values.seed),
    depth: countOf('depth', values.depth),
    steps: countOf('steps', values.steps),
  }
  return { names, isList, isUsual, ...counts, case: name, print }
}

/** Whether a trial is the one that is asked for, or begins with its name, as `databases-mysql` does for `databases`. */
function isOf(asked: string, trial: string): boolean {
  return trial === asked || trial.startsWith(`${asked}-`)
}

function requireCase(names: readonly string[], name: string): void {
  const [trial, ...others] = names.map((each) => TRIALS[each])
  if (!trial?.requireCase || others.length > 0) throw new Error('--case needs one trial that has cases: pairs')
  trial.requireCase(name)
}

function countOf(name: string, text: string | undefined): number | null {
  if (text === undefined) return null
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new Error(`--${name} must be a number from 1 on`)
  return Number(text)
}

/** A line for each case of the trials that are named, or for each trial: its name, seed, load, faults, and what must hold. */
function listTrials(names: readonly string[]): void {
  const cases = names.flatMap((name) => TRIALS[name]?.cases?.() ?? [])
  if (cases.length > 0) {
    for (const line of cases) print(line)
    return
  }
  for (const [name, { seed, load, faults, holds }] of Object.entries(TRIALS))
    print(`${name} | seed ${seed ?? 'none'} | load: ${load} | faults: ${faults} | holds: ${holds}`)
}

/** Runs the trials that are asked for, or all, and writes their figures into the report; exits with 1 if one failed. */
async function runTrials(asked: Asked): Promise<void> {
  const failed: string[] = []
  const runs: TrialRun[] = []
  const all = Object.keys(TRIALS)
  for (const [name, trial] of Object.entries(TRIALS)) {
    if (asked.names.length > 0 && !asked.names.some((each) => isOf(each, name))) continue
    const run = await runTrial(name, trial, asked)
    runs.push(run)
    if ('error' in run.outcome) failed.push(name)
    // After each, so that an interrupted run keeps its results.
    if (asked.isUsual) writeReport(REPORT, all, runs, false)
  }
  if (asked.isUsual && runs.length === all.length) writeReport(REPORT, all, runs, true)
  print(failed.length === 0 ? 'every trial held' : `failed: ${failed.join(', ')}`)
  process.exitCode = failed.length === 0 ? 0 : 1
}

async function runTrial(name: string, trial: Trial, asked: Asked): Promise<TrialRun> {
  if (trial.needsDatabase) await startTestDatabase()
  const server = trial.needsDatabase ? `, ${await serverVersion()}` : ''
  const machine = `${availableParallelism()} cores, Node ${process.version}${server}`
  const startedAt = systemClock.now()
  const startedMs = performance.now()
  const end = (outcome: TrialRun['outcome']): TrialRun => {
    const seconds = (performance.now() - startedMs) / 1000
    return { name, seed: asked.seed ?? trial.seed, startedAt, seconds, machine, outcome }
  }
  try {
    const figures = await trial.run(asked)
    const run = end({ figures })
    print(`${name}: held in ${run.seconds.toFixed(1)} s ${JSON.stringify(figures)}`)
    return run
  } catch (error) {
    // With its causes.
    print(`${name}: FAILED ${inspect(error)}`)
    return end({ error: messageOf(error).split('\n')[0]?.replaceAll(ROOT, '.') ?? '' })
  } finally {
    if (trial.needsDatabase) {
      await emptyTestDatabase()
      await stopTestDatabase()
    }
  }
}

async function serverVersion(): Promise<string> {
  const [server]: { version: string }[] = await testDatabase().db.query('SELECT VERSION() AS version')
  return server?.version ?? ''
}

try {
  const asked = readArguments(process.argv.slice(2))
  if (asked.isList) listTrials(asked.names)
  else await runTrials(asked)
} catch (error) {
  process.stderr.write(`${messageOf(error)}\n`)
  process.exitCode = 1
}
