import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { formatTimestamp } from '#shared/time.ts'

/** One run of one trial's long form. */
export interface TrialRun {
  readonly name: string
  /** Null if nothing is random. */
  readonly seed: number | null
  readonly startedAt: Date
  readonly seconds: number
  /** The machine: `2 cores, Node v24.21.0, MariaDB 10.11.11`. */
  readonly machine: string
  readonly outcome: { readonly figures: unknown } | { readonly error: string }
}

const HEAD = ['trial', 'result', 'started (UTC)', 'seconds', 'seed', 'machine', 'figures']
const INTRODUCTION = `# Trials

The last run of the long form of each trial, written by \`npm run trials\`. A run of some trials replaces their rows, a run of all of them the whole table.
The file of each name in this folder says what the trial does and checks.
`
const LONGEST_CELL = 1000

/**
 * Replaces the rows of \`runs` in the report; rows of others stay as they are, as far as `names`, the trials that there are in their order, has
 * them. With `isWhole` no row of another run stays.
 */
export function writeReport(path: string, names: readonly string[], runs: readonly TrialRun[], isWhole: boolean): void {
  const cells = new Map(runs.map((run) => [run.name, cellsOf(run)]))
  writeTable(path, { introduction: INTRODUCTION, head: HEAD, names }, cells, isWhole)
}

/** A report: the text above its table, the column names, and the row names in order. */
export interface Report {
  readonly introduction: string
  readonly head: readonly string[]
  readonly names: readonly string[]
}

/** Writes the given rows by name (the first cell); keeps the others, unless the report `isWhole`. */
export function writeTable(
  path: string,
  { introduction, head, names }: Report,
  cells: ReadonlyMap<string, readonly string[]>,
  isWhole: boolean,
): void {
  const rows = isWhole ? new Map<string, string>() : rowsOf(path)
  for (const [name, row] of cells) rows.set(name, rowFrom(row))
  const lines = [rowFrom(head), rowFrom(head.map(() => '---')), ...names.flatMap((name) => rows.get(name) ?? [])]
  // An interrupted run leaves either the old report or the new one.
  writeFileSync(`${path}.tmp`, `${introduction}\n${lines.join('\n')}\n`)
  renameSync(`${path}.tmp`, path)
}

function rowsOf(path: string): Map<string, string> {
  const lines = existsSync(path) ? readFileSync(path, 'utf8').split('\n') : []
  const rows = lines.flatMap((line): [string, string][] => {
    const name = /^\| ([a-z0-9-]+) \|/.exec(line)?.[1]
    return name === undefined ? [] : [[name, line]]
  })
  return new Map(rows)
}

function cellsOf({ name, seed, startedAt, seconds, machine, outcome }: TrialRun): string[] {
  const [result, said] = 'error' in outcome ? ['**failed**', outcome.error] : ['held', wordsOf(outcome.figures)]
  return [name, result, formatTimestamp(startedAt), seconds.toFixed(1), String(seed ?? '-'), machine, said]
}

function rowFrom(cells: readonly string[]): string {
  return `| ${cells.map(cellOf).join(' | ')} |`
}

function cellOf(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim()
  const cut = line.length <= LONGEST_CELL ? line : `${line.slice(0, LONGEST_CELL)}…`
  return cut.replace(/[\\|`<]/g, '\\$&')
}

/** `payments 200, outage (seconds 4.2, errors 0)` */
function wordsOf(figures: unknown): string {
  if (figures === null || typeof figures !== 'object')
    return typeof figures === 'string' ? figures : (JSON.stringify(figures) ?? '')
  if (Array.isArray(figures)) return figures.map(bracketed).join(', ')
  return Object.entries(figures)
    .map(([name, value]) => `${name} ${bracketed(value)}`)
    .join(', ')
}

function bracketed(value: unknown): string {
  return value !== null && typeof value === 'object' ? `(${wordsOf(value)})` : wordsOf(value)
}
