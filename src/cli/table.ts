import { styleText } from 'node:util'
import Table from 'cli-table3'
import { printable } from './printable.ts'
import { wrap } from './wrap.ts'

export interface TableOptions {
  readonly head: readonly string[]
  readonly rows: readonly (readonly unknown[])[]
  /** What to say instead of an empty table. */
  readonly none: string
}

/** Where the output is no terminal, and the least that is asked of one. */
const USUAL_WIDTH = 80
const LEAST_WIDTH = 40
const LEAST_COLUMN = 6
/** The blanks beside a cell's text. */
const PADDING = 2

/**
 * A table as wide as the terminal, 80 columns where there is none. Long cells wrap between words. Where no table could show every word
 * whole, each row becomes a block of its own, a line for each field: identifiers stay whole, to be copied. The head is bold on a
 * terminal that wants colours.
 */
export function formatTable({ head, rows, none }: TableOptions, width = terminalWidth()): string {
  if (rows.length === 0) return none
  const texts = rows.map((row) => row.map(cellText))
  const widths = fitWidths([head, ...texts], width)
  return widths ? drawTable(head, texts, widths) : texts.map((row) => drawBlock(head, row, width)).join('\n')
}

/** A two-column table of a thing's fields. Only here is a word broken, where it is longer than a line. */
export function formatFields(fields: Readonly<Record<string, unknown>>, width = terminalWidth()): string {
  const texts = Object.entries(fields).map(([name, value]) => [name, cellText(value)])
  if (texts.length === 0) return 'nothing'
  const [names = 0, values = 0] = naturalWidths([['field', 'value'], ...texts])
  return drawTable(['field', 'value'], texts, [names, Math.max(LEAST_COLUMN, Math.min(values, width - names - 3))])
}

function terminalWidth(): number {
  return Math.max(LEAST_WIDTH, (process.stdout.isTTY ? process.stdout.columns : 0) || USUAL_WIDTH)
}

function drawTable(head: readonly string[], texts: readonly (readonly string[])[], widths: readonly number[]): string {
  const wrapped = (row: readonly string[]) => row.map((text, column) => wrap(text, (widths[column] ?? 0) - PADDING))
  const table = new Table({
    head: wrapped(head),
    // As the table draws it, behind the wrapping: an escape sequence in a cell would be wrapped like text.
    style: { head: isColoured() ? ['bold'] : [], border: [], compact: true },
    colWidths: [...widths],
    // For characters that take two columns; all others are wrapped already.
    wordWrap: true,
    wrapOnWordBoundary: false,
  })
  table.push(...texts.map(wrapped))
  return table.toString()
}

/** One row as lines of `name  value`, below a rule. */
function drawBlock(head: readonly string[], row: readonly string[], width: number): string {
  const names = Math.max(...head.map(({ length }) => length))
  const lines = row.flatMap((text, column) =>
    wrap(text, width - names - PADDING)
      .split('\n')
      .map(
        (line, index) =>
          `${bold((index === 0 ? (head[column] ?? '') : '').padEnd(names))}${' '.repeat(PADDING)}${line}`,
      ),
  )
  return ['─'.repeat(width), ...lines].join('\n')
}

/** Whether standard output is a terminal that NO_COLOR and TERM let have colours. */
function isColoured(): boolean {
  return bold('x') !== 'x'
}

function bold(text: string): string {
  return styleText('bold', text, { stream: process.stdout })
}

function cellText(value: unknown): string {
  if (value === null || value === undefined) return '-'
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  return printable(typeof value === 'string' ? value : JSON.stringify(value))
}

function naturalWidths(rows: readonly (readonly string[])[]): number[] {
  return columnsOf(rows).map((texts) => Math.max(...texts.map(({ length }) => length)) + PADDING)
}

/** Widths with padding: natural where they fit, else narrowed as far as words stay whole; null where that is not enough. */
function fitWidths(rows: readonly (readonly string[])[], width: number): number[] | null {
  const widths = naturalWidths(rows)
  const unbroken = columnsOf(rows).map((texts) => Math.max(...texts.map(longestWord)) + PADDING)
  const isTooWide = () => widths.reduce((sum, one) => sum + one, widths.length + 1) > width
  while (isTooWide()) {
    const room = widths.map((one, column) => (one > (unbroken[column] ?? 0) ? one : 0))
    const widest = room.indexOf(Math.max(...room))
    if ((room[widest] ?? 0) === 0) return null
    widths[widest] = (widths[widest] ?? 0) - 1
  }
  return widths
}

function columnsOf(rows: readonly (readonly string[])[]): string[][] {
  return (rows[0] ?? []).map((_, column) => rows.map((row) => row[column] ?? ''))
}

function longestWord(text: string): number {
  return Math.max(...text.split(' ').map(({ length }) => length))
}
