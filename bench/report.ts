import { writeTable } from '../test/trials/write-report.ts'
import { spreadOf, type Outcome, type Round, type Row } from './row.ts'

const HEAD = ['row', 'what', 'floor in the same run', 'ours', 'floor', 'ours by floor', 'must', 'goal', 'holds']
const INTRODUCTION = `# Measurements

The last run of each row, written by \`npm run bench\`: eleven rounds after those that warm up, in which the sides take turns. Each figure is
the median of the rounds, with the least and the most of them in brackets. A floor does the same durable work with the least code.
`

/** The report's cells of each row, by its name. */
export function cellsOf(row: Row, outcome: Outcome | null): string[] {
  const { name, what, floor, unit, judged } = row
  const head = [name, what, floor ?? '-']
  const wanted = [row.must, row.goal].map((value) => thresholdOf(row, value))
  if (outcome === null) return [...head, '-', '-', '-', ...wanted, 'not run']
  if ('skipped' in outcome) return [...head, '-', '-', '-', ...wanted, outcome.skipped]
  const { rounds } = outcome
  const ours = rounds.map((round) => round.ours)
  const floors = rounds.flatMap((round) => round.floor ?? [])
  const judgedFigures = judged === 'value' ? ours : rounds.map(ratioOf)
  const figures = [
    `${spread(ours)} ${unit}`,
    floors.length === 0 ? '-' : `${spread(floors)} ${unit}`,
    judged === 'value' ? '-' : spread(judgedFigures, judged === 'multiple' ? '×' : ''),
  ]
  return [...head, ...figures, ...wanted, verdictOf(row, spreadOf(judgedFigures).median)]
}

/** Replaces the rows that were run in the report. */
export function writeReport(
  path: string,
  rows: readonly Row[],
  outcomes: ReadonlyMap<string, Outcome>,
  machine: string,
): void {
  const cells = rows.flatMap((row): [string, readonly string[]][] => {
    const outcome = outcomes.get(row.name)
    return outcome ? [[row.name, [...cellsOf(row, outcome), machine]]] : []
  })
  const names = rows.map(({ name }) => name)
  writeTable(path, { introduction: INTRODUCTION, head: [...HEAD, 'machine'], names }, new Map(cells), false)
}

/** All rows, those that were not run too, for a terminal; what each is, the report says. */
export function printable(rows: readonly Row[], outcomes: ReadonlyMap<string, Outcome>): string {
  const lines = [HEAD, ...rows.map((row) => cellsOf(row, outcomes.get(row.name) ?? null))].map(
    ([name, , , ...figures]) => [name ?? '', ...figures],
  )
  const widths = lines[0]!.map((_, column) => Math.max(...lines.map((line) => line[column]!.length)))
  return lines
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column]!))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

function ratioOf({ ours, floor }: Round): number {
  return ours / (floor ?? NaN)
}

function verdictOf({ judged, must, goal }: Row, figure: number): string {
  const reaches = (threshold: number): boolean => (judged === 'share' ? figure >= threshold : figure <= threshold)
  if (reaches(goal)) return 'goal'
  return reaches(must) ? 'must' : '**no**'
}

function thresholdOf({ judged, unit }: Row, value: number): string {
  if (judged === 'value') return `${value} ${unit}`
  return judged === 'multiple' ? `${value}×` : value.toFixed(2)
}

function spread(values: readonly number[], unit = ''): string {
  const { median, least, most } = spreadOf(values)
  if (values.length === 1) return figure(median) + unit
  return `${figure(median)}${unit} (${figure(least)} to ${figure(most)})`
}

/** Three digits that count. */
function figure(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3)
}
